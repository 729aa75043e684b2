"""Two runs side by side, on one clock: what each waited for, and what differs."""

from engine.settings import MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS
from engine.weights.catalogue import MODELS
from views import lessons, place, station

station.show(
    "compare",
    {
        "examples": lessons.examples(place.lang()),
        "models": {name: {"title": model.title} for name, model in MODELS.items()},
        "limits": {"characters": MAX_PROMPT_CHARACTERS, "new_tokens": MAX_NEW_TOKENS},
    },
    both=True,
)
