"""Figures that two notebooks need, and the style and the parts that every figure is made with.

A figure that one notebook needs is drawn there, in a folded cell before its first use. A function
draws a figure and returns it, not shown: a cell that ends with the call displays it once. Colours
are Okabe and Ito's, which readers with a colour vision deficiency can tell apart; markers or
labels say the same again.
"""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
SCALE = 1.5  # stored pixels a pixel shown: sharp letters in small files
STYLE: Any = dict(mpl.rc_params_from_file(Path(__file__).with_name("plots.mplstyle"), True, False))
STYLE["axes.prop_cycle"] = plt.cycler(color=COLOURS)


def new_figure(columns=1, width=7.0, height=2.8, **options: Any) -> tuple[Figure, list[Axes]]:
    """An empty figure in the common style with `columns` axes side by side; `options` as
    `plt.subplots`.

    The figure is closed at once, so that a notebook shows it only where it is a cell's result.
    """
    with mpl.rc_context(STYLE):
        figure = plt.figure(FigureClass=NotebookFigure, figsize=(width, height))
        axes = figure.subplots(1, columns, squeeze=False, **options)
        plt.close(figure)
    return figure, list(axes[0])


class NotebookFigure(Figure):
    """A figure that a notebook stores at `SCALE` times the resolution at which it is shown."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        bundle = {"image/png": png(self), "text/plain": repr(self)}
        display(bundle, metadata={"image/png": shown(self)}, raw=True)


def shown(figure: Figure) -> dict[str, Any]:
    """The size in pixels at which a notebook shows a figure, and its title as alternative text."""
    width, height = (round(inches * figure.dpi) for inches in figure.get_size_inches())
    alt = figure.get_suptitle() or figure.axes[0].get_title() or figure.axes[0].get_ylabel()
    return {"width": width, "height": height, "alt": alt}


def interact(draw: Callable[..., Figure], **controls: Any) -> None:
    """Show a figure under sliders, and draw it again whenever one of them is moved.

    As `ipywidgets.interact`, but the notebook also keeps the first picture, for pages and viewers
    where no kernel runs.

    Args:
        draw: the figure for the controls' values, which it takes by name.
        controls: name → widget with a `value`, in the order in which they are shown.

    Example:
        `plots.interact(circle, tau=widgets.FloatSlider(value=0.5, description="τ"))`
    """
    from IPython.display import display

    def drawn() -> Figure:
        return draw(**{name: control.value for name, control in controls.items()})

    def redraw(_change: object) -> None:
        picture.value = png(drawn())

    first = drawn()
    size = shown(first)
    picture = widgets.Image(value=png(first), width=size["width"])
    for control in controls.values():
        control.observe(redraw, "value")
    box = widgets.VBox([*controls.values(), picture], layout={"align_items": "flex-start"})
    bundle = box._repr_mimebundle_() | {"image/png": bytes(picture.value)}
    display(bundle, metadata={"image/png": size}, raw=True)


def png(figure: Figure, colours: int = 96) -> bytes:
    """The figure as a PNG file of `SCALE` times its size in pixels and so many colours.

    The palette holds the figure's own colours: lines and areas keep theirs, and a shade between two
    of them moves by a few of 255 steps.
    """
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=SCALE * figure.dpi)
    how: Any = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 3, "dither": Image.Dither.NONE}
    Image.open(full).convert("RGB").quantize(colours, **how).save(small, "png", optimize=True)
    return small.getvalue()


def colour(i: int) -> str:
    """Colour of the i-th group; from the eighth on they come again, with other markers."""
    return COLOURS[i % len(COLOURS)]


def marker(i: int) -> str:
    """Marker of the i-th group: 49 groups differ in colour or marker.

    Example:
        >>> len({(colour(i), marker(i)) for i in range(49)})
        49
    """
    return MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]


def numbers(axis: Axes, matrix: Any, digits=2, white_above=math.inf, bold: Any = None) -> None:
    """Write the numbers of a matrix into the cells that `axis.imshow` draws of it.

    Args:
        matrix: array or table (rows, columns); the cell of a NaN stays empty.
        digits: after the point.
        white_above: larger numbers are white, on dark cells.
        bold: (rows, columns), which numbers are bold; None: none is.
    """
    for (row, column), value in np.ndenumerate(np.asarray(matrix)):
        if np.isnan(value):
            continue
        text = f"{round(float(value), digits) + 0:.{digits}f}".replace("-", "−")
        ink = "white" if value > white_above else "black"
        weight = "bold" if bold is not None and bold[row, column] else "normal"
        axis.text(column, row, text, color=ink, weight=weight, ha="center", va="center")


@mpl.rc_context(STYLE)
def forest(differences: pd.DataFrame, xlabel: str) -> Figure:
    """Differences from a baseline: a dot and its interval a row, and the zero line where row and
    baseline are equal.

    Args:
        differences: row → `mean` and `95 % ±`, as `statistics.paired_differences`; a row without an
            interval has the dot alone.
    """
    figure, (axis,) = new_figure(1, 6.4, 1.0 + 0.26 * len(differences))
    axis.axvline(0, color="0.4", lw=1)
    place = np.arange(len(differences))
    style: Any = {"fmt": "o", "color": colour(0), "ms": 5, "lw": 1.8}
    axis.errorbar(differences["mean"], place, xerr=differences["95 % ±"], **style)
    axis.set_yticks(place, list(differences.index))
    axis.set(xlabel=xlabel, ylim=(-0.6, len(differences) - 0.4))
    axis.invert_yaxis()
    return figure
