"""Makes the font files beside this script: the same letters, hence the same pixels, on every machine.

    python assets/scene/fonts/subset.py [FOLDER WITH THE NOTO FONTS ...]

Needs fonttools and brotli, and Noto Serif, Noto Sans, Noto Sans Mono, Noto Sans Math and Symbols, Noto CJK (on
Debian: fonts-noto-core, fonts-noto-mono, fonts-noto-cjk). Run it again when words in assets/words/zh change:
headings and labels hold exactly the characters used there, answers and questions get the common ones as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

HERE = Path(__file__).parent
WORDS = HERE.parents[1] / "words"
DEBIAN = (Path("/usr/share/fonts/truetype/noto"), Path("/usr/share/fonts/opentype/noto"))
FOLDERS = [Path(folder) for folder in sys.argv[1:]] or DEBIAN

LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x180), 0x192, *range(0x2B0, 0x2DE), *range(0x370, 0x400),
         *range(0x2010, 0x2028), 0x2030, 0x2032, 0x2033, 0x2039, 0x203A, 0x2044, 0x20AC, 0x2122]  # fmt: skip
SYMBOLS = [*range(0x2190, 0x2194), 0x21B5, 0x21E5, 0x21BB, 0x27F2, 0x2212, 0x2248, 0x2260, 0x2264, 0x2265,
           *range(0x2400, 0x2422), 0x237D, 0x25A0, 0x25B6, 0x25CC, 0x2713, 0x2715, 0x27E8, 0x27E9, 0x22EF,
           0x2026]  # fmt: skip
CJK_FORMS = [*range(0x3000, 0x3018), *range(0xFF01, 0xFF5F)]
SIMPLIFIED_CHINESE = 2  # index inside the .ttc collections


def common() -> list[int]:
    """The 1,450 most frequent simplified characters, nine tenths of running text (others come from the system)."""
    return [ord(c) for c in (HERE / "common.txt").read_text("utf-8") if ord(c) > 0x2E80]


def used() -> list[int]:
    """Every Chinese character and form in assets/words (the English words may quote Chinese ones, too)."""
    text = "".join(file.read_text("utf-8") for file in WORDS.glob("*/*.json"))
    return sorted({ord(c) for c in text if ord(c) > 0x2E80} | set(CJK_FORMS))


def find(name: str) -> Path:
    return next(folder / name for folder in FOLDERS if (folder / name).is_file())


def make(source: str, target: str, characters: list[int]) -> dict[str, object]:
    """One subset as woff2; answers which of the characters it holds."""
    options = subset.Options(flavor="woff2", layout_features=["kern", "liga", "locl", "mark", "mkmk", "ccmp", "tnum"])
    options.desubroutinize = False
    font = TTFont(find(source), fontNumber=SIMPLIFIED_CHINESE if source.endswith(".ttc") else -1)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=characters)
    chosen.subset(font)
    held = sorted(font.getBestCmap())
    font.flavor = "woff2"
    font.save(HERE / target)
    print(f"{target:28} {len(held):5} characters {(HERE / target).stat().st_size:9,} bytes")
    return {"file": target, "range": ", ".join(ranges(held))}


def ranges(codes: list[int]) -> list[str]:
    """[1, 2, 3, 7] as U+1-3, U+7."""
    spans: list[list[int]] = []
    for code in codes:
        if spans and code == spans[-1][1] + 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    return [f"U+{a:X}" if a == b else f"U+{a:X}-{b:X}" for a, b in spans]


def main() -> None:
    words = used()
    rest = sorted(set(common()) - set(words))
    plan = [
        ("Exam Serif", "400", "normal", "NotoSerif-Regular.ttf", "serif.woff2", LATIN),
        ("Exam Serif", "700", "normal", "NotoSerif-Bold.ttf", "serif-bold.woff2", LATIN),
        ("Exam Serif", "400", "italic", "NotoSerif-Italic.ttf", "serif-italic.woff2", LATIN),
        ("Exam Serif", "700", "italic", "NotoSerif-BoldItalic.ttf", "serif-bold-italic.woff2", LATIN),
        ("Exam Sans", "400", "normal", "NotoSans-Regular.ttf", "sans.woff2", LATIN),
        ("Exam Sans", "700", "normal", "NotoSans-Bold.ttf", "sans-bold.woff2", LATIN),
        ("Exam Mono", "400", "normal", "NotoSansMono-Regular.ttf", "mono.woff2", [*LATIN[:95], *SYMBOLS]),
        ("Exam Sans", "400", "normal", "NotoSansMath-Regular.ttf", "math.woff2", SYMBOLS),
        ("Exam Sans", "400", "normal", "NotoSansSymbols2-Regular.ttf", "symbols.woff2", SYMBOLS),
        ("Exam Sans", "400", "normal", "NotoSansCJK-Regular.ttc", "sans-zh.woff2", words),
        ("Exam Sans", "700", "normal", "NotoSansCJK-Bold.ttc", "sans-zh-bold.woff2", words),
        ("Exam Serif", "400", "normal", "NotoSerifCJK-Regular.ttc", "serif-zh.woff2", words),
        ("Exam Serif", "700", "normal", "NotoSerifCJK-Bold.ttc", "serif-zh-bold.woff2", words),
        ("Exam Serif", "400", "normal", "NotoSerifCJK-Regular.ttc", "serif-zh-common.woff2", rest),
    ]
    faces = []
    for family, weight, style, source, target, characters in plan:
        faces.append({"family": family, "weight": weight, "style": style} | make(source, target, characters))
    (HERE / "faces.json").write_text(json.dumps(faces, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
