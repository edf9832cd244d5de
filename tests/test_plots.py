"""Figures of `lib.plots`: what is plotted where, asked of the figure's lines and bars, not of its
pixels."""

import io

import ipywidgets as widgets
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from PIL import Image

from lib import plots

mpl.use("Agg")
NAN = float("nan")


def data(drawn: Line2D) -> tuple[list[float], list[float]]:
    """x and y of a line."""
    x, y = drawn.get_data()
    return np.asarray(x, float).tolist(), np.asarray(y, float).tolist()


def ticks(axis: Axes, which: str) -> dict[float, str]:
    """Place → label of the ticks of the axis `which`, x or y."""
    along = getattr(axis, f"{which}axis")
    labels = [text.get_text() for text in along.get_ticklabels()]
    return dict(zip(np.asarray(along.get_ticklocs(), float).tolist(), labels, strict=True))


def test_a_new_figure_has_so_many_axes_of_its_size():
    figure, axes = plots.new_figure(3, 8.4, 2.5, sharey=True)
    assert len(axes) == 3 and figure.get_size_inches().tolist() == [8.4, 2.5]
    assert axes[0].get_shared_y_axes().joined(axes[0], axes[2])
    assert plt.get_fignums() == [], "pyplot would show it a second time"


def test_a_figure_of_several_axes_is_told_by_its_own_title():
    figure, (axis, _) = plots.new_figure(2)
    axis.set_title("the first")
    assert plots.shown(figure)["alt"] == "the first"
    figure.suptitle("both")
    assert plots.shown(figure)["alt"] == "both"


def test_a_stored_picture_has_more_pixels_than_shown_and_keeps_its_colours(monkeypatch):
    figure, (axis,) = plots.new_figure()
    for i in range(len(plots.COLOURS)):
        axis.plot([1, 2], [i, i + 1], color=plots.colour(i), lw=1.8)
    axis.set_title("seven lines")
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *what, **how: shown.append((what, how)))
    figure._ipython_display_()
    (((content,), how),) = shown
    stored = Image.open(io.BytesIO(content["image/png"]))
    size = how["metadata"]["image/png"]
    assert stored.size == pytest.approx((1.5 * size["width"], 1.5 * size["height"]), abs=1)
    assert stored.format == "PNG" and stored.mode == "P"
    assert stored.size == pytest.approx(1.5 * figure.get_size_inches() * figure.dpi, abs=1)
    full = io.BytesIO()
    figure.savefig(full, format="png", dpi=1.5 * figure.dpi)
    drawn, kept = (np.asarray(p.convert("RGB"), dtype=int) for p in (Image.open(full), stored))
    assert abs(drawn - kept).max() <= 16
    for colour in plots.COLOURS:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert (kept == rgb).all(axis=2).any(), colour
    few = Image.open(io.BytesIO(plots.png(figure, 4)))
    assert few.size == stored.size and len(few.getcolors()) <= 4


def test_numbers_stand_in_their_cells_white_on_dark_ones_and_none_for_a_nan():
    _, (axis,) = plots.new_figure()
    matrix = np.array([[0.9, -0.001], [-0.5, NAN]])
    plots.numbers(axis, matrix, white_above=0.8, bold=matrix < 0)
    told = [(t.get_position(), t.get_text(), t.get_color(), t.get_weight()) for t in axis.texts]
    assert told == [
        ((0, 0), "0.90", "white", "normal"),
        ((1, 0), "0.00", "black", "bold"),
        ((0, 1), "−0.50", "black", "bold"),
    ]
    _, (axis,) = plots.new_figure()
    plots.numbers(axis, pd.DataFrame([[70.6]]), digits=0)
    assert axis.texts[0].get_text() == "71"


def test_a_forest_has_a_dot_and_its_interval_a_row():
    table = pd.DataFrame({"mean": [1.0, -2.0], "95 % ±": [0.5, NAN]}, index=["a", "b"])
    (axis,) = plots.forest(table, "points").axes
    (bars,) = axis.containers
    assert data(bars.lines[0]) == ([1.0, -2.0], [0.0, 1.0])
    assert next(seg.tolist() for seg in bars.lines[2][0].get_segments()) == [[0.5, 0], [1.5, 0]]
    assert list(ticks(axis, "y").values()) == ["a", "b"] and axis.yaxis_inverted()
    assert axis.get_ylim() == (1.6, -0.6) and axis.get_xlabel() == "points"


def test_a_moved_slider_draws_the_figure_again_and_the_first_picture_is_kept(monkeypatch):
    shown, values = [], []

    def draw(rate, kind):
        values.append((rate, kind))
        figure, (axis,) = plots.new_figure(width=4.0)
        axis.set_title(f"{kind} {rate}")
        axis.plot([0, rate])
        return figure

    monkeypatch.setattr(
        "IPython.display.display", lambda data, metadata, raw: shown.append((data, metadata))
    )
    rate = widgets.FloatSlider(value=0.5, min=0, max=1)
    plots.interact(draw, rate=rate, kind=widgets.Dropdown(options=["rows", "columns"]))
    ((bundle, metadata),) = shown
    assert metadata["image/png"] == {"width": 384, "height": 269, "alt": "rows 0.5"}
    *_, picture = (w for w in widgets.Widget.widgets.values() if isinstance(w, widgets.Image))
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bytes(picture.value) == bundle["image/png"]
    rate.value = 0.75
    assert values == [(0.5, "rows"), (0.75, "rows")]
    assert bytes(picture.value) != bundle["image/png"]
