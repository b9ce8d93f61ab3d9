"""A profile as a piece of HTML that stands in a notebook: the page of `bragg report` in a frame."""

from __future__ import annotations

import html

from bragg.model import Profile
from bragg.views.web.page import page
from bragg.views.web.report_payload import report_payload

__all__ = ["frame_of", "page_of"]

_TITLE = "profile"
_HEIGHT_PX = 620
# The page runs its own script and nothing else: it reaches neither the notebook nor the network.
_FRAME = (
    '<iframe srcdoc="{page}" sandbox="allow-scripts" title="bragg profile" '
    'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:4px"></iframe>'
)


def frame_of(profile: Profile) -> str:
    """What `Profile._repr_html_` returns: an iframe that holds everything and asks nothing of the network."""
    return _FRAME.format(page=html.escape(page_of(profile)), height=_HEIGHT_PX)


def page_of(profile: Profile) -> str:
    """The page of a profile for the `srcdoc` of a frame."""
    # Relative addresses of such a page would be those of the notebook.
    return page([report_payload(profile, _TITLE)], _TITLE, base="about:srcdoc")
