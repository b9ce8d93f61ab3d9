// Compares one declaration of native/backends/cuda/driver with the vendor's and prints the row "name ours theirs".
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>

#if CUPTI_API_VERSION >= 24
#include <cupti_pmsampling.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/driver/cupti_pc_sampling.h"
#include "backends/cuda/driver/cupti_range_profiler.h"
#include "backends/cuda/driver/cupti_sass_metrics.h"

namespace cuda = bragg::cuda;
namespace ours = bragg::cupti;

template <class A, class B>
void row(const char* name, A ours, B theirs) {
  std::printf("%s %lld %lld\n", name, static_cast<long long>(ours), static_cast<long long>(theirs));
}

// A type as the calling convention sees it: enums are 32-bit numbers and all pointers are one type.
template <class T>
struct Plain {
  using Type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct Plain<T> {
  static_assert(sizeof(T) == sizeof(uint32_t));
  using Type = uint32_t;
};
template <>
struct Plain<unsigned long long> {
  using Type = uint64_t;
};
template <class T>
struct Plain<T*> {
  using Type = void*;
};
template <class R, class... Args>
struct Plain<R(Args...)> {
  using Type = typename Plain<R>::Type(typename Plain<Args>::Type...);
};
template <class A, class B>
constexpr bool same_abi = std::is_same_v<typename Plain<A>::Type, typename Plain<B>::Type>;

#define CUDA_VALUE(type, name, theirs) row(#type "." #name, cuda::type::name, theirs)
#define CUDA_CONSTANT(name, theirs) row(#name, cuda::name, theirs)
#define VALUE(type, name, theirs) row(#type "." #name, ours::type::name, theirs)
#define CONSTANT(name, theirs) row(#name, ours::name, theirs)
// Offset and element size in one number.
#define PLACE(type, field) \
  (1000 * offsetof(type, field) + sizeof(std::remove_all_extents_t<decltype(reinterpret_cast<type*>(8)->field)>))
#define FIELD(type, name, their_type, theirs) row(#type "." #name, PLACE(ours::type, name), PLACE(their_type, theirs))
#define SIZE(kind, theirs) \
  row("record_size." #kind, ours::record_size(ours::Kind::kind, CUPTI_API_VERSION), sizeof(theirs))
#define CUDA_SIGNATURE(type, theirs) row(#type, same_abi<cuda::type, decltype(theirs)>, true)
#define SIGNATURE(type, theirs) row(#type, same_abi<ours::type, decltype(theirs)>, true)
#define CALLBACK(type, theirs) row(#type, same_abi<ours::type, std::remove_pointer_t<theirs>>, true)
