"""Figures of `lib.plots` and of the notebooks: what is plotted where, asked of the figure's lines,
bars and labels, not of its pixels."""

import ast
import inspect
import io
import re
from collections.abc import Callable
from functools import cache

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from lib import plots
from lib.runs import notebooks

mpl.use("Agg")
NAN = float("nan")
HISTORY = [
    {"step": 1, "loss": 3.0, "in_batch_accuracy": 0.1},
    {"step": 2, "loss": 2.5, "in_batch_accuracy": 0.4, "dev_score": 61.0},
    {"step": 3, "loss": 2.0, "in_batch_accuracy": 0.7, "dev_score": NAN},
    {"step": 4, "loss": 1.0, "in_batch_accuracy": 0.9, "dev_score": 64.0},
]
GAINS = pd.DataFrame(
    {"mean": [1.5, -0.5], "95 % ±": [1.0, NAN], "size": [0.6, 0.1], "kind": ["rule", "chance"]}
    | {"side": ["right", "below"]},
    index=["DN", "masks"],
)
COSINES = pd.DataFrame(
    {"row": ["two", "two", "two", "one"], "seed": [0, 0, 1, 0], "step": [1, 300, 1, 1]}
    | {"positive_cosine": [0.8, 0.7, 0.9, 1.0], "other_cosine": [0.4, 0.0, 0.5, 0.3]}
)
ANGLES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


@cache
def in_notebooks() -> dict[str, tuple[str, str]]:
    """Figures that a notebook draws itself, in folded functions that return a figure: name → the
    cell that defines it, the notebook's import cell."""
    found: dict[str, tuple[str, str]] = {}
    for path in notebooks.find_all():
        cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
        for cell in cells.values():
            folded = cell.metadata.get("jupyter", {}).get("source_hidden")
            if folded and "return figure" in cell.source:
                (name,) = re.findall(r"^def (\w+)\(", cell.source, re.MULTILINE)
                assert name not in found, f"two notebooks draw {name}"
                found[name] = cell.source, cells["imports"].source
    return found


@cache
def draws(name: str) -> Callable[..., Figure]:
    """A notebook's function, from its cell alone and the imports that it names."""
    source, imports = in_notebooks()[name]
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    space: dict = {}
    for statement in ast.parse(imports).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [n for n in statement.names if (n.asname or n.name) in used]
            if statement.names:
                exec(ast.unparse(statement), space)
    exec(source, space)
    return space[name]


def data(drawn: Line2D) -> tuple[list[float], list[float]]:
    """x and y of a line."""
    x, y = drawn.get_data()
    return np.asarray(x, float).tolist(), np.asarray(y, float).tolist()


def named(axis: Axes) -> dict[str, Line2D]:
    """The lines of an axis that have a label, in order."""
    return {
        str(drawn.get_label()): drawn
        for drawn in axis.lines
        if not str(drawn.get_label()).startswith("_")
    }


def texts(axis: Axes) -> list[str]:
    """Words and numbers written into an axis."""
    return [text.get_text() for text in axis.texts]


def legend(axis: Axes) -> list[str]:
    """The entries of the legend, in the panel or under the figure."""
    (found,) = [axis.get_legend()] if axis.get_legend() else axis.figure.legends
    return [text.get_text() for text in found.get_texts()]


def ticks(axis: Axes, which: str) -> dict[float, str]:
    """Place → label of the ticks of the axis `which`, x or y."""
    along = getattr(axis, f"{which}axis")
    labels = [text.get_text() for text in along.get_ticklabels()]
    return dict(zip(np.asarray(along.get_ticklocs(), float).tolist(), labels, strict=True))


def look(drawn: Line2D) -> tuple[str, object, str]:
    """Colour, marker and dash of a line."""
    return to_hex(drawn.get_color()).upper(), drawn.get_marker(), drawn.get_linestyle()


def margin_table(mean: list[float], low: list[float], high: list[float]) -> pd.DataFrame:
    """As `lib.evaluate.margin_table`, of the first of two kinds."""
    kinds = ["negated", "unrelated"][: len(mean)]
    return pd.DataFrame({"mean_margin": mean, "low": low, "high": high}, index=kinds)


# --- all of them
# -------------------------------------------------------------------------------------------

EACH: dict[str, Callable[[str], Figure]] = {
    "circles": lambda t: draws("circles")({t: (ANGLES, ANGLES)}, list("abc")),
    "curves": lambda t: plots.curves([1, 2], {"a": [3, 4]}, "x", "y", t),
    "pull_and_push": lambda t: draws("pull_and_push")(["a"], np.ones(1), -np.ones(1), t),
    "push_shares": lambda t: draws("push_shares")(np.array([0.5, 0.1]), [0.1]),
    "training": lambda t: plots.training(HISTORY, 3.2, t),
    "margins": lambda t: plots.margins({"a": margin_table([0.1], [0.0], [0.2])}, title=t),
    "two_cosines": lambda t: draws("two_cosines")(COSINES, t),
    "embedded": lambda t: draws("embedded")({"a": np.eye(3)}, list("abc"), t),
    "view_grid": lambda t: draws("view_grid")(np.array([[0.0, 1.0], [0.5, 0.0]]), ["a", "b"], t),
    "words": lambda t: draws("words")(["a"], {"z": [1.0]}, t),
    "histograms": lambda t: draws("histograms")({"a": np.array([1.0])}, [0, 2], "x", t),
    "cases": lambda t: draws("cases")({"holds": (0.9, 0.5)}, 1.0, t),
    "claimed": lambda t: draws("claimed")(
        pd.DataFrame(
            {"paper": ["una"], "seeds": [5], "claim": ["a"], "ours": [1.0]}
            | {"half_width": [0.5], "printed": [2.0]}
        ),
        "una",
        t,
    ),
    "choices": lambda t: draws("choices")({"α": (1, pd.DataFrame({"a": [0.5]}, [1]))}, 2.0, t),
    "forest": lambda t: plots.forest(
        pd.DataFrame({"mean": [1.0], "95 % ±": [0.5]}, index=["a"]), "x", t
    ),
    "steps": lambda t: plots.steps(
        pd.DataFrame({"row": ["a"], "seed": [0], "step": [1], "loss": [1.0]}), "loss", "y", t
    ),
    "gain_by_size": lambda t: draws("gain_by_size")(GAINS, ["masks"], t),
}


@pytest.mark.parametrize("name", EACH)
def test_a_figure_has_its_title_and_is_shown_by_no_one_but_its_cell(name):
    """The title is where notebooks say how many sentences, steps and seeds a figure has."""
    title = "5 seeds, 300 dev pairs"
    figure = EACH[name](title)
    assert isinstance(figure, plots.NotebookFigure) and plt.get_fignums() == []
    found = [figure.get_suptitle(), *(axis.get_title() for axis in figure.axes)]
    assert title in found or name == "push_shares"


def in_lib() -> set[str]:
    return {
        n
        for n, f in vars(plots).items()
        if inspect.isfunction(f) and f.__annotations__.get("return") is Figure
    }


def test_no_figure_is_left_out():
    assert in_lib() | set(in_notebooks()) == set(EACH)


def test_figures_of_lib_are_those_that_two_notebooks_need():
    sources = [path.read_text(encoding="utf-8") for path in notebooks.find_all()]
    drawn = in_lib()
    users = {name: sum(f"plots.{name}(" in source for source in sources) for name in drawn}
    assert {name: n for name, n in users.items() if n < 2} == {}
    assert in_lib().isdisjoint(in_notebooks())


def test_a_new_figure_has_so_many_axes_of_its_size():
    figure, axes = plots.new_figure(3, 8.4, 2.5, sharey=True)
    assert (
        len(axes) == 3
        and figure.get_size_inches().tolist() == [8.4, 2.5]
        and plt.get_fignums() == []
    )
    assert (
        axes[0].get_shared_y_axes().joined(axes[0], axes[2])
        and not axes[1].spines["top"].get_visible()
    )


def test_a_stored_picture_is_twice_as_large_and_keeps_its_colours():
    lines = {str(i): [i, i + 1] for i in range(len(plots.COLOURS))}
    figure = plots.curves([1, 2], lines, "x", "y")
    stored = Image.open(io.BytesIO(plots.png(figure)))
    assert stored.format == "PNG" and stored.mode == "P"
    assert stored.size == pytest.approx(2 * figure.get_size_inches() * figure.dpi, abs=1)
    full = io.BytesIO()
    figure.savefig(full, format="png", dpi=2 * figure.dpi)
    drawn, kept = (np.asarray(p.convert("RGB"), dtype=int) for p in (Image.open(full), stored))
    assert abs(drawn - kept).max() <= 16
    for colour in plots.COLOURS:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert (kept == rgb).all(axis=2).any(), colour
    few = Image.open(io.BytesIO(plots.with_palette(plots.png(figure), 4)))
    assert few.size == stored.size and len(few.getcolors()) <= 4


def test_a_notebook_shows_the_picture_at_its_own_size(monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda content, **how: shown.append((content, how))
    )
    figure = plots.curves([0.1, 1.0], {"a": [5, 6]}, "x", "y")
    figure._ipython_display_()
    ((content, how),) = shown
    assert how["raw"] and content["image/png"] == plots.png(figure)
    size = how["metadata"]["image/png"]
    stored = Image.open(io.BytesIO(content["image/png"]))
    assert stored.size == pytest.approx((2 * size["width"], 2 * size["height"]), abs=1)


def test_groups_are_told_apart_without_colour_and_beyond_seven():
    looks = [(plots.colour(i), plots.marker(i)) for i in range(20)]
    assert (
        len(set(looks)) == 20
        and len({m for _, m in looks[:7]}) == len({c for c, _ in looks[:7]}) == 7
    )
    assert len({(plots.colour(i), plots.line(i)) for i in range(20)}) == 20


# --- 01: InfoNCE
# -------------------------------------------------------------------------------------------


def test_circles_show_anchors_filled_and_positives_empty():
    positives = ANGLES @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    figure = draws("circles")(
        {"before": (ANGLES, positives), "after": (positives, ANGLES)}, ["x", "y", "z"]
    )
    before, after = figure.axes
    assert [before.get_title(), after.get_title()] == ["before", "after"] and texts(before) == [
        "x",
        "y",
        "z",
    ]
    around, *pairs = before.lines
    assert np.hypot(*around.get_data()) == pytest.approx(1)
    for i, (anchor, positive) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        assert np.ravel(data(anchor)) == pytest.approx(ANGLES[i])
        assert np.ravel(data(positive)) == pytest.approx(positives[i])
        assert anchor.get_fillstyle() == "full" and positive.get_fillstyle() == "none"
        assert look(anchor)[:2] == look(positive)[:2] == (plots.COLOURS[i], plots.MARKERS[i])
        assert before.texts[i].get_color() == plots.COLOURS[i]
    assert np.ravel(data(after.lines[1])) == pytest.approx(positives[0])
    assert np.array([text.get_position() for text in before.texts]) == pytest.approx(1.2 * ANGLES)
    assert {text.get_ha() for text in before.texts if text.get_position()[0] > 0.4} == {"left"}


def test_a_filmstrip_is_no_wider_than_a_page():
    one, five = (
        draws("circles")({f"step {i}": (ANGLES, ANGLES) for i in range(n)}, list("xyz"))
        for n in (1, 5)
    )
    assert one.get_size_inches()[0] < five.get_size_inches()[0] <= 9
    assert [axis.get_title() for axis in five.axes] == [f"step {i}" for i in range(5)]


def test_pull_and_push_are_bars_beside_their_sum():
    pull, push = np.array([0.5, -0.25]), np.array([-1.0, 0.25])
    (axis,) = draws("pull_and_push")(["x", "y"], pull, push, "τ = 1").axes
    bars = [(bar.get_width(), to_hex(bar.get_facecolor()).upper()) for bar in axis.patches]
    green, red = plots.COLOURS[2], plots.COLOURS[1]
    assert bars == [(0.5, green), (-0.25, green), (-1.0, red), (0.25, red)]
    assert [bar.get_hatch() for bar in axis.patches] == [None, None, "//", "//"]
    assert data(axis.lines[0]) == ([-0.5, 0.0], [0, 1]) and data(axis.lines[1])[0] == [0, 0]
    assert ticks(axis, "y") == {0: "x", 1: "y"} and axis.yaxis_inverted()
    assert sorted(legend(axis)) == ["pull of the positive", "push of the negatives", "sum"]


def test_curves_are_their_numbers():
    (axis,) = plots.curves([1, 10, 100], {"a": [3, 1, 2], "b": [4, NAN, 6]}, "τ", "nats").axes
    assert {name: data(drawn) for name, drawn in named(axis).items() if name == "a"} == {
        "a": ([1, 10, 100], [3, 1, 2])
    }
    assert data(named(axis)["b"])[1] == [4, pytest.approx(NAN, nan_ok=True), 6]
    assert legend(axis) == ["a", "b"] and [look(d) for d in named(axis).values()] == [
        (plots.COLOURS[0], "o", "-"),
        (plots.COLOURS[1], "s", "--"),
    ]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("τ", "nats")
    straight = plots.curves(range(11), {"a": range(11)}, "x", "y", marks={"chance": 4.5}).axes[0]
    assert look(straight.lines[0])[1] == "None"
    assert data(straight.lines[1])[0] == [4.5, 4.5] and texts(straight) == [" chance"]
    assert straight.texts[0].get_position()[0] == 4.5 and legend(straight) == ["a"]


def test_shares_of_the_push_are_a_softmax_over_the_negatives():
    cosines = np.array([0.7, 0.9, -0.2])
    figure = draws("push_shares")(cosines, [0.05, 1.0])
    assert [axis.get_title() for axis in figure.axes] == ["τ = 0.05", "τ = 1.00"]
    for axis, tau in zip(figure.axes, (0.05, 1.0), strict=True):
        expected = np.exp(cosines / tau) / np.exp(cosines / tau).sum()
        assert [bar.get_height() for bar in axis.patches] == pytest.approx(expected)
        assert list(ticks(axis, "x").values()) == ["0.70", "0.90", "−0.20"]
        assert texts(axis) == [f"{share:.0%}" for share in expected]
        assert {to_hex(bar.get_facecolor()).upper() for bar in axis.patches} == {plots.COLOURS[1]}
        assert axis.get_ylim()[0] == 0 and axis.get_ylim()[1] > 1


# --- 02: SimCSE
# --------------------------------------------------------------------------------------------


def test_two_cosines_has_a_panel_a_row_and_a_line_a_seed_in_the_colours_of_the_drawings():
    figure = draws("two_cosines")(COSINES)
    two, one = figure.axes
    assert (two.get_title(), one.get_title()) == ("two", "one")
    own, others = named(two)["same sentence"], named(two)["others"]
    assert data(own) == ([1, 300], [0.8, 0.7]) and data(others) == ([1, 300], [0.4, 0.0])
    assert own.get_color() == plots.role("same sentence", 0)
    assert others.get_color() == plots.role("others", 0)
    assert own.get_linestyle() != others.get_linestyle()
    assert [len(two.lines), len(one.lines)] == [4, 2] and two.get_ylim() == one.get_ylim()


# --- trainings
# ---------------------------------------------------------------------------------------------


def test_a_training_in_three_panels():
    loss, accuracy, dev = plots.training(HISTORY, 3.2, "run", "Spearman × 100").axes
    assert data(loss.lines[0]) == ([1, 2, 3, 4], [3.0, 2.5, 2.0, 1.0])
    assert data(accuracy.lines[0]) == ([1, 2, 3, 4], [0.1, 0.4, 0.7, 0.9])
    assert data(dev.lines[0]) == ([2, 4], [61.0, 64.0])  # where there is a score
    assert data(loss.lines[1])[1] == [3.2, 3.2] and loss.get_ylim()[0] == 0
    assert [a.get_ylabel() for a in (loss, accuracy, dev)] == [
        "loss (nats)",
        "in-batch accuracy",
        "Spearman × 100",
    ]
    empty = plots.training([], 3.2).axes
    assert [len(axis.lines[0].get_xdata()) for axis in empty] == [0, 0, 0]


# --- scores
# ------------------------------------------------------------------------------------------------


def bars(axis: Axes) -> list[list[list[float]]]:
    """Ends of the horizontal bars that show means, condition by condition; none for a mean that is
    not a number."""
    return [s.tolist() for collection in axis.collections for s in collection.get_segments()]


def test_margins_are_dots_with_intervals_a_row_a_kind():
    before = margin_table([-0.2, 0.3], [-0.3, 0.1], [-0.15, 0.5])
    tables = {"before": before, "after": margin_table([0.1], [0.0], [0.2])}
    (axis,) = plots.margins(tables, "margin").axes
    assert ticks(axis, "y") == {0: "negated", 1: "unrelated"} and axis.yaxis_inverted()
    assert data(axis.lines[0])[0] == [0, 0] and legend(axis) == ["before", "after"]
    (x, y), (x2, y2) = (data(container[0]) for container in axis.containers)
    assert (x, x2) == ([-0.2, 0.3], [0.1]) and y == pytest.approx([-0.15, 0.85])
    assert y2 == pytest.approx([0.15])
    assert len({look(container[0])[1:] for container in axis.containers}) == 2
    lines = [segment for c in axis.containers for segment in c[2][0].get_segments()]
    assert np.ravel([s[:, 0] for s in lines]) == pytest.approx([-0.3, -0.15, 0.1, 0.5, 0, 0.2])
    places = {t.get_text().strip(): (t.get_position()[0], t.get_ha()) for t in axis.texts}
    assert places == {"← changed nearer": (0, "right"), "paraphrase nearer →": (0, "left")}


# --- 03 and 04
# ---------------------------------------------------------------------------------------------


def test_embeddings_are_absolute_values_with_white_zeros():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5))
    cut = x.copy()
    cut[1] = 0
    left, right = draws("embedded")({"whole": x, "token cutoff": cut}, ["a", "red", "cat"]).axes
    whole, shown = (axis.images[0].get_array() for axis in (left, right))
    assert not np.ma.getmaskarray(whole).any() and np.ma.getmaskarray(shown).all(1).tolist() == [
        False,
        True,
        False,
    ]
    top = np.quantile(np.abs(x), 0.98)
    assert np.asarray(whole) == pytest.approx(0.25 * top + 0.75 * np.abs(x))
    assert left.images[0].get_clim() == right.images[0].get_clim() == pytest.approx((0, top))
    assert ticks(left, "y") == {0: "a", 1: "red", 2: "cat"} and list(ticks(right, "x")) == [0, 4]
    assert to_hex(right.images[0].get_cmap().get_bad()) == "#ffffff"


def test_pairs_of_views_are_coloured_from_zero_both_ways():
    (axis,) = draws("view_grid")(np.array([[0.0, 0.5], [-2.0, 0.25]]), ["none", "cut"]).axes
    (image,) = axis.images
    assert image.get_clim() == (-2, 2) and image.get_cmap().name == "BrBG"
    assert texts(axis) == ["0", "+0.50", "−2.00", "+0.25"]
    assert [text.get_color() for text in axis.texts] == ["black", "black", "white", "black"]
    (frame,) = axis.patches
    assert frame.get_xy() == (-0.47, -0.47) and not frame.get_fill()
    assert ticks(axis, "x") == ticks(axis, "y") == {0: "none", 1: "cut"}
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("view 2", "view 1")


def test_words_have_their_bars_and_the_heaviest_are_hatched():
    left, right = draws("words")(
        ["the", "cat", "sat"], {"z": [0.0, 0.7, 0.7], "p": [0.1, 1.0, 0.4]}
    ).axes
    assert [bar.get_width() for bar in left.patches] == [0.0, 0.7, 0.7]
    assert [bar.get_width() for bar in right.patches] == [0.1, 1.0, 0.4]
    assert [bar.get_hatch() for bar in left.patches] == [None, "//", "//"]
    assert texts(right) == [" 0.10", " 1.00", " 0.40"] and ticks(left, "y") == {
        0: "the",
        1: "cat",
        2: "sat",
    }
    assert (left.get_xlabel(), right.get_xlabel()) == ("z", "p") and left.yaxis_inverted()


def test_histograms_are_shares_of_each_group():
    (axis,) = draws("histograms")(
        {"a": np.array([0.5, 1.5, 1.6, 2.5]), "b": np.array([0.5])}, [0, 1, 2, 3], "x"
    ).axes
    outlines = {str(p.get_label()): p.get_xy() for p in axis.patches}
    heights = {
        name: [xy[(xy[:, 0] == i)][:, 1].max() for i in (0, 1, 2)] for name, xy in outlines.items()
    }
    assert heights == {
        "a": [0.25, 0.5, 0.5],
        "b": [1.0, 1.0, 0.0],
    }  # the higher of the two bins at an edge
    assert axis.get_ylabel() == "share of the sentences" and legend(axis) == ["a", "b"]
    assert [to_hex(p.get_edgecolor()).upper() for p in axis.patches] == list(plots.COLOURS[:2])
    solid, dashed = (patch.get_linestyle()[1] for patch in axis.patches)
    assert solid is None and dashed is not None


def test_choices_are_points_on_a_band_with_a_bar_behind_the_chosen():
    alpha = pd.DataFrame({"UNA": [-2.3, 0.7, 0.5], "both": [0.0, 1.1, 0.5]}, index=[1, 5, 9])
    beta = pd.DataFrame({"UNA": [-3.6, 0.7], "both": [0.8, 1.1]}, index=[0.3, 0.5])
    left, right = draws("choices")({"α": (5, alpha), "β": (0.5, beta)}, 2.5).axes
    una, both = (data(named(left)[name]) for name in ("UNA", "both"))
    assert una == (pytest.approx([-0.1, 0.9, 1.9]), [-2.3, 0.7, 0.5])
    assert both == (pytest.approx([0.1, 1.1, 2.1]), [0.0, 1.1, 0.5])
    assert {look(named(left)[name])[1:] for name in ("UNA", "both")} == {
        ("o", "None"),
        ("s", "None"),
    }
    for axis, at in ((left, 1), (right, 1)):
        (chosen,) = [d for d in axis.lines if d.get_gid() == "chosen"]
        assert data(chosen)[0] == [at, at]
    (band,) = left.patches
    assert band.get_y() == -2.5 and band.get_height() == 5
    assert left.get_ylim() == right.get_ylim()
    (below,) = left.figure.legends
    names = ["luck, 95 %", "UNA", "both", "the paper's choice"]
    assert [text.get_text() for text in below.get_texts()] == names
    assert list(ticks(left, "x").values()) == ["1", "5", "9"] and left.get_xlabel() == "α"


def test_a_forest_has_a_dot_and_its_interval_a_row_and_the_papers_diamonds():
    table = pd.DataFrame({"mean": [1.0, -2.0], "95 % ±": [0.5, NAN]}, index=["a", "b"])
    (axis,) = plots.forest(table, "points", papers={"b": -1.5}).axes
    (bars,) = axis.containers
    assert data(bars.lines[0]) == ([1.0, -2.0], [0.0, 1.0])
    assert next(seg.tolist() for seg in bars.lines[2][0].get_segments()) == [[0.5, 0], [1.5, 0]]
    x, y = data(named(axis)["paper"])
    assert np.isnan(x[0]) and x[1] == -1.5 and y == [0.0, 1.0]
    assert list(ticks(axis, "y").values()) == ["a", "b"] and axis.yaxis_inverted()
    assert axis.get_ylim() == (1.6, -0.6) and legend(axis) == ["paper", "ours"]
    assert not plots.forest(table, "points").legends


def test_positives_and_negatives_have_the_colours_of_the_drawings():
    lines = {"UNA negative": [1, 2], "positive": [1, 2], "a": [1, 2], "the others": [1, 2]}
    (axis,) = plots.curves([1, 2], lines, "x", "y").axes
    colours = [drawn.get_color() for drawn in axis.lines]
    assert colours == ["#CC79A7", "#009E73", "#009E73", "#D55E00"]


def test_steps_draw_a_line_a_seed_and_one_entry_a_row():
    rows = [("a", 0), ("a", 1), ("b", 0)]
    table = pd.DataFrame(
        [(row, seed, step, step + seed) for row, seed in rows for step in (1, 2)],
        columns=["row", "seed", "step", "loss"],
    )
    table.loc[0, "loss"] = NAN
    (axis,) = plots.steps(table, "loss", "nats").axes
    assert [data(drawn) for drawn in axis.lines] == [
        ([2.0], [2.0]),
        ([1.0, 2.0], [2.0, 3.0]),
        ([1.0, 2.0], [1.0, 2.0]),
    ]
    assert legend(axis) == ["a", "b"]
    assert look(axis.lines[0]) == look(axis.lines[1]) != look(axis.lines[2])
    assert plots.steps(table, "loss", "nats", log=True).axes[0].get_xscale() == "log"


def test_cases_set_intervals_beside_zero_and_the_papers_difference():
    (axis,) = draws("cases")({"holds": (0.9, 0.5), "fails": (-0.6, 0.4)}, 1.0).axes
    zero, paper = (drawn.get_xdata()[0] for drawn in axis.lines[:2])
    assert (zero, paper) == (0, 1.0) and texts(axis) == ["the paper's difference", "no difference"]
    assert [bars.lines[0].get_xdata()[0] for bars in axis.containers] == [0.9, -0.6]
    assert list(ticks(axis, "y").values()) == ["holds", "fails"]


def test_claimed_draws_the_tested_claims_of_one_paper():
    table = pd.DataFrame(
        {
            "paper": ["una", "una", "sda"],
            "seeds": [5, 0, 5],
            "claim": ["a", "b", "c"],
            "ours": [1.0, NAN, 3.0],
            "half_width": [0.5, NAN, 0.5],
            "printed": [2.0, 1.0, 1.0],
        }
    )
    (axis,) = draws("claimed")(table, "una").axes
    assert list(ticks(axis, "y").values()) == ["a"]
    assert data(named(axis)["paper"]) == ([2.0], [-0.25]), "above the interval, not on it"
    assert texts(axis) == []
    (axis,) = draws("claimed")(table, "una", right=1.8).axes
    assert texts(axis) == ["paper 2.0 →"] and axis.get_xlim()[1] == 1.8


# --- 05: SDA
# -------------------------------------------------------------------------------------------


def test_gains_stand_at_their_size_with_interval_and_name_beside_it():
    (axis,) = draws("gain_by_size")(GAINS, ["masks"]).axes
    dots = named(axis)
    assert data(dots["rule"]) == ([0.6], [1.5]) and data(dots["chance"]) == ([0.1], [-0.5])
    assert [dot.get_markerfacecolor() for dot in dots.values()] == [plots.COLOURS[0], "white"]
    assert np.ravel(bars(axis)[0]) == pytest.approx([0.6, 0.5, 0.6, 2.5])
    places = {t.get_text(): (tuple(t.xy), t.get_ha(), t.get_position()) for t in axis.texts}
    assert places == {
        "DN": ((0.6, 1.5), "left", (6, -4)),
        "masks": ((0.1, -0.5), "center", (0, -14)),
    }
    assert data(axis.lines[1]) == ([0.1], [-0.5])  # the line through the joined rows
    assert legend(axis) == ["rule", "chance"] and data(axis.lines[0])[1] == [0, 0]
