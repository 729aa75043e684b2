"""Guesses from a smaller model: it writes on by itself, greedily, and the run's own model reads what it wrote
(Leviathan et al. 2023; Chen et al. 2023).

It keeps notes of its own about the same text. Guesses that were refused are forgotten before the next ones are made:
its notes go back to what the two texts have in common. Both models must cut text into the same tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from engine.cache import RunCache
from engine.model.tap import Pass
from engine.settings import Refusal, Settings

if TYPE_CHECKING:
    from engine.model import LanguageModel

CHUNK = 256
"""Tokens of the text that it reads between two words of the run, until it has caught up: others wait no longer."""


def drafter(settings: Settings, model: LanguageModel, drafts: LanguageModel | None, positions: int) -> Drafter | None:
    """What guesses for a run with these settings, if another model is to: `drafts`, for a text of at most `positions`
    tokens. Raises `Refusal`: `model_not_ready` where it is not given, `other_vocabulary`."""
    if not settings.draft or not settings.draft_model:
        return None
    if drafts is None:
        raise Refusal("model_not_ready", model=settings.draft_model)
    return Drafter(drafts, model, positions)


class Drafter:
    """One run's guesses by `model`, for `target`. Raises `Refusal("other_vocabulary")`, and out-of-memory errors."""

    def __init__(self, model: LanguageModel, target: LanguageModel, positions: int) -> None:
        if not same_tokens(model, target):
            raise Refusal("other_vocabulary", draft=model.facts.model, model=target.facts.model)
        self._model = model
        self._ends = target.end_ids
        self._ids = min(model.facts.vocabulary, target.facts.vocabulary)
        self._cache = RunCache(model.shape, min(positions, model.facts.context))
        self._read: list[int] = []
        self._sure = 0

    def draft(self, text: list[int], most: int) -> list[int]:
        """What it would write after `text`, `most` tokens at most: fewer where the answer would end or its notes have
        no room, none while it has not caught up with the text."""
        most = min(most, self._cache.capacity - len(text) + 1)
        if most <= 0:
            return []
        self._go_back(text)
        unread = text[len(self._read) :]
        if len(unread) > CHUNK:
            self._pass(unread[:CHUNK])
            self._sure = len(self._read)
            return []
        guesses = [self._likeliest(self._pass(unread))]
        self._sure = len(text)
        while len(guesses) < most and guesses[-1] not in self._ends:
            guesses.append(self._likeliest(self._pass(guesses[-1:])))
        return guesses

    def _go_back(self, text: list[int]) -> None:
        """Keep the notes of what `text` has too; its last token is read in any case, since a guess comes from it."""
        most = min(len(self._read), len(text) - 1)
        parts = (place for place in range(self._sure, most) if self._read[place] != text[place])
        same = next(parts, most)
        del self._read[same:]
        self._cache.length = same

    def _pass(self, ids: list[int]) -> Tensor:
        """Read on: fp32 logits `(vocabulary,)` after the last of `ids`."""
        logits = self._model.forward([ids], Pass([self._cache], len(ids)))[0]
        self._cache.commit(len(ids))
        self._read += ids
        return logits

    def _likeliest(self, logits: Tensor) -> int:
        return int(logits[: self._ids].argmax())


def same_tokens(model: LanguageModel, other: LanguageModel) -> bool:
    """Whether each token has the same id in both."""
    return model is other or model.text.vocabulary == other.text.vocabulary
