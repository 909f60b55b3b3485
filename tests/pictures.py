"""What tests ask of a picture: that all of it can be read, that nothing in it is infinite, that it can be written."""

import itertools

import numpy as np


def texts(ax):
    """All visible text of a picture: title, axis labels, tick labels, annotations and legend."""
    ax.figure.canvas.draw()
    legend = ax.get_legend()
    found = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *(legend.get_texts() if legend else ())]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_visible() and text.get_text()]


def assert_readable(ax):
    """No text is cut off by the edge of the figure, and none lies on another's."""
    found = texts(ax)
    renderer = ax.figure.canvas.get_renderer()
    boxes = [(text, text.get_window_extent(renderer)) for text in found]
    width, height = ax.figure.canvas.get_width_height()
    for text, box in boxes:
        assert box.x0 >= -1, f"{text.get_text()!r} is cut off"
        assert box.y0 >= -1, f"{text.get_text()!r} is cut off"
        assert box.x1 <= width + 1, f"{text.get_text()!r} is cut off"
        assert box.y1 <= height + 1, f"{text.get_text()!r} is cut off"
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        if one.get_rotation() % 90 == 0 and other.get_rotation() % 90 == 0:
            apart = first.x1 <= second.x0 + 1 or second.x1 <= first.x0 + 1
            apart = apart or first.y1 <= second.y0 + 1 or second.y1 <= first.y0 + 1
            assert apart, f"{one.get_text()!r} lies on {other.get_text()!r}"
    if ax.get_legend() is not None:
        assert ax.get_legend().get_window_extent(renderer).y0 >= ax.get_window_extent(renderer).y1 - 1


def legend_texts(ax):
    """What the legend says, in order."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def below_title(ax):
    """The quieter line below the title: how the numbers came about."""
    return ax.texts[-1].get_text()


def assert_finite(ax):
    """Every line has finite data inside the limits of the picture."""
    assert len(ax.lines) > 0
    for line in ax.lines:
        assert np.isfinite(np.asarray(line.get_ydata(), dtype=float)).all()


def png(ax, tmp_path):
    """The picture as PNG bytes."""
    path = tmp_path / "picture.png"
    ax.figure.savefig(path, dpi=100)
    return path.read_bytes()
