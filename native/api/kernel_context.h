// For the bindings, beside bragg_core.h: values that belong to a kernel before it is launched.
#pragma once

#include "api/bragg_core.h"

#ifdef __cplusplus
extern "C" {
#endif

// Until `bragg_state_exit`, this thread is at the node that a launch of `function` would have here. The kernel is shown
// as `name`; nullptr: as its launches are called otherwise, `symbol` if nothing else is known.
BRAGG_EXPORT void bragg_kernel_enter(const void* function, const char* name, const char* symbol);

#ifdef __cplusplus
}
#endif
