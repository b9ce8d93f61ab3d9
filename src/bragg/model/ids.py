"""Rows of tables that other tables refer to: one is not taken for another."""

from __future__ import annotations

from typing import NewType

FrameId = NewType("FrameId", int)
"""A row of the frame table."""

NodeId = NewType("NodeId", int)
"""A node of a call tree."""

ROOT = NodeId(0)
