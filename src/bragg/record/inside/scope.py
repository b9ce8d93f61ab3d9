"""Named regions: `bragg.scope` is the native type itself, so that nothing stands between it and the core."""

from __future__ import annotations

from bragg.core import core

scope = core.Scope
enter_scope = core.enter_scope
exit_scope = core.exit_scope
