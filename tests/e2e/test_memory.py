"""The page "Will it fit?" in a real browser: its numbers are the engine's, its figures are not blank."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import Page, expect

from engine.plan import plan
from engine.plan.configs import kept
from engine.plan.formats import BFLOAT16
from engine.plan.read import read
from tests.e2e.conftest import App

LONG = 60_000


def choose(page: Page, name: str) -> None:
    box = page.get_by_role("combobox", name="Model", exact=False).first
    box.click()
    box.fill(name)
    page.get_by_role("option", name=name, exact=False).first.click()


def test_numbers_figures_and_a_strangers_text(app: App, visit: Callable[..., Page]) -> None:
    page = visit(f"{app.address}/memory")
    page.set_default_timeout(LONG)
    sheet = page.locator(".st-key-sheet-verdict")
    bundled = plan(read(kept("smollm2-135m-instruct")), 4096, 1, BFLOAT16, BFLOAT16)
    for count in (bundled.weights_bytes, bundled.kv_bytes, bundled.activation_bytes):
        expect(sheet).to_contain_text(f"= {count:,}", timeout=LONG)

    heat = page.locator(".st-key-memory-heat")
    heat.scroll_into_view_if_needed()
    expect(heat.locator("image")).to_have_count(1, timeout=LONG)
    cells = heat.locator(".heatmap-label").all_text_contents()
    assert len(cells) == 40 and all(cell.startswith("✕") or cell.endswith("iB") for cell in cells)
    colours = heat.locator("image").evaluate(
        """async (image) => {
            const picture = new Image(); picture.src = image.getAttribute("href") || image.getAttribute("xlink:href");
            await picture.decode();
            const canvas = document.createElement("canvas");
            canvas.width = picture.width; canvas.height = picture.height;
            const context = canvas.getContext("2d"); context.drawImage(picture, 0, 0);
            const data = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return new Set(data).size; }"""
    )
    assert colours >= 4, "the heat map is blank"

    choose(page, "Qwen2 72B")
    expect(sheet).to_contain_text("145,412,407,296", timeout=LONG)
    context = page.get_by_role("spinbutton", name="Context")
    context.fill("131072")
    context.press("Enter")
    expect(sheet).to_contain_text("= 42,949,672,960", timeout=LONG)
    expect(sheet).to_contain_text("does not fit", timeout=LONG)

    page.get_by_text("Paste", exact=True).click()
    text = page.locator(".st-key-memory-paste textarea")
    text.fill(json.dumps({"model_type": "<img src=x onerror=alert(1)> **b**"}))
    text.press("Control+Enter")
    error = page.get_by_role("alert").filter(has_text="model_type")
    expect(error).to_be_visible(timeout=LONG)
    assert error.locator("img, strong, b").count() == 0
    text.fill(json.dumps(kept("gemma-3-270m")))
    text.press("Control+Enter")
    expect(sheet).to_contain_text("= 536,196,352", timeout=LONG)
    expect(page.locator(".st-key-sheet-run")).to_contain_text("Predicted and measured")
