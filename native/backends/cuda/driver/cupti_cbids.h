// Driver API callback ids (domain DriverApi) of the calls that put work on a GPU. Ids are never renumbered: the 633
// that CUPTI 12.0 and 13.5 share are equal.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace bragg::cupti {

struct DriverCall {
  uint32_t cbid;
  std::string_view name;
};

// Kernel and graph launches. _ptsz: compiled for the per-thread default stream. Ascending.
inline constexpr DriverCall launch_calls[] = {{115, "cuLaunch"},
                                              {116, "cuLaunchGrid"},
                                              {117, "cuLaunchGridAsync"},
                                              {307, "cuLaunchKernel"},
                                              {442, "cuLaunchKernel_ptsz"},
                                              {477, "cuLaunchCooperativeKernel"},
                                              {478, "cuLaunchCooperativeKernel_ptsz"},
                                              {480, "cuLaunchCooperativeKernelMultiDevice"},
                                              {514, "cuGraphLaunch"},
                                              {515, "cuGraphLaunch_ptsz"},
                                              {652, "cuLaunchKernelEx"},
                                              {653, "cuLaunchKernelEx_ptsz"}};

// Calls that make graphs; launches are above. Ascending.
inline constexpr DriverCall graph_calls[] = {{495, "cuStreamBeginCapture"},
                                             {496, "cuStreamBeginCapture_ptsz"},
                                             {497, "cuStreamEndCapture"},
                                             {498, "cuStreamEndCapture_ptsz"},
                                             {513, "cuGraphInstantiate"},
                                             {539, "cuStreamBeginCapture_v2"},
                                             {540, "cuStreamBeginCapture_v2_ptsz"},
                                             {561, "cuGraphExecUpdate"},
                                             {578, "cuGraphInstantiate_v2"},
                                             {643, "cuGraphInstantiateWithFlags"},
                                             {656, "cuGraphInstantiateWithParams"},
                                             {657, "cuGraphInstantiateWithParams_ptsz"},
                                             {696, "cuGraphExecUpdate_v2"},
                                             {720, "cuStreamBeginCaptureToGraph"},
                                             {721, "cuStreamBeginCaptureToGraph_ptsz"}};

// Calls that load modules and find their functions. Ascending.
inline constexpr DriverCall module_calls[] = {{18, "cuModuleLoad"},
                                              {19, "cuModuleLoadData"},
                                              {20, "cuModuleLoadDataEx"},
                                              {21, "cuModuleLoadFatBinary"},
                                              {23, "cuModuleGetFunction"}};
inline constexpr uint32_t kModuleGetFunction = 23;

// Other calls in which the driver holds its locks while CUPTI takes in the code, stream or context that they make: code
// is loaded lazily, by whatever asks for a function first. Ascending.
inline constexpr DriverCall holding_calls[] = {{22, "cuModuleUnload"},
                                               {24, "cuModuleGetGlobal"},
                                               {85, "cuFuncGetAttribute"},
                                               {86, "cuFuncSetCacheConfig"},
                                               {124, "cuStreamCreate"},
                                               {235, "cuCtxCreate_v2"},
                                               {241, "cuModuleGetGlobal_v2"},
                                               {322, "cuCtxDestroy_v2"},
                                               {326, "cuStreamDestroy_v2"},
                                               {338, "cuFuncSetSharedMemConfig"},
                                               {367, "cuStreamCreateWithPriority"},
                                               {374, "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
                                               {384, "cuOccupancyMaxPotentialBlockSize"},
                                               {386, "cuDevicePrimaryCtxRetain"},
                                               {451, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"},
                                               {452, "cuOccupancyMaxPotentialBlockSizeWithFlags"},
                                               {481, "cuFuncSetAttribute"},
                                               {543, "cuOccupancyAvailableDynamicSMemPerBlock"},
                                               {544, "cuDevicePrimaryCtxRelease_v2"},
                                               {545, "cuDevicePrimaryCtxReset_v2"},
                                               {566, "cuFuncGetModule"},
                                               {580, "cuGraphUpload"},
                                               {581, "cuGraphUpload_ptsz"},
                                               {645, "cuCtxCreate_v3"},
                                               {675, "cuOccupancyMaxPotentialClusterSize"},
                                               {676, "cuOccupancyMaxActiveClusters"},
                                               {678, "cuLibraryLoadData"},
                                               {679, "cuLibraryLoadFromFile"},
                                               {680, "cuLibraryUnload"},
                                               {681, "cuLibraryGetKernel"},
                                               {682, "cuLibraryGetModule"},
                                               {683, "cuKernelGetFunction"},
                                               {684, "cuLibraryGetGlobal"},
                                               {685, "cuLibraryGetManaged"},
                                               {686, "cuKernelGetAttribute"},
                                               {687, "cuKernelSetAttribute"},
                                               {688, "cuKernelSetCacheConfig"},
                                               {700, "cuLibraryGetUnifiedFunction"},
                                               {733, "cuFuncGetParamInfo"},
                                               {734, "cuKernelGetParamInfo"},
                                               {737, "cuModuleGetFunctionCount"},
                                               {738, "cuModuleEnumerateFunctions"},
                                               {739, "cuLibraryGetKernelCount"},
                                               {740, "cuLibraryEnumerateKernels"},
                                               {742, "cuFuncLoad"},
                                               {743, "cuGreenCtxCreate"},
                                               {744, "cuGreenCtxDestroy"},
                                               {757, "cuCtxCreate_v4"},
                                               {758, "cuGreenCtxStreamCreate"}};

// Copies and sets. _ptds: compiled for the per-thread default stream. Ascending.
inline constexpr DriverCall memory_calls[] = {{43, "cuMemcpyHtoD"},
                                              {45, "cuMemcpyDtoH"},
                                              {47, "cuMemcpyDtoD"},
                                              {49, "cuMemcpyDtoA"},
                                              {51, "cuMemcpyAtoD"},
                                              {53, "cuMemcpyHtoA"},
                                              {54, "cuMemcpyAtoH"},
                                              {55, "cuMemcpyAtoA"},
                                              {56, "cuMemcpy2D"},
                                              {57, "cuMemcpy2DUnaligned"},
                                              {58, "cuMemcpy3D"},
                                              {60, "cuMemcpyHtoDAsync"},
                                              {62, "cuMemcpyDtoHAsync"},
                                              {64, "cuMemcpyDtoDAsync"},
                                              {66, "cuMemcpyHtoAAsync"},
                                              {67, "cuMemcpyAtoHAsync"},
                                              {68, "cuMemcpy2DAsync"},
                                              {69, "cuMemcpy3DAsync"},
                                              {71, "cuMemsetD8"},
                                              {73, "cuMemsetD16"},
                                              {75, "cuMemsetD32"},
                                              {77, "cuMemsetD2D8"},
                                              {79, "cuMemsetD2D16"},
                                              {81, "cuMemsetD2D32"},
                                              {216, "cuMemsetD8Async"},
                                              {218, "cuMemsetD16Async"},
                                              {220, "cuMemsetD32Async"},
                                              {222, "cuMemsetD2D8Async"},
                                              {224, "cuMemsetD2D16Async"},
                                              {226, "cuMemsetD2D32Async"},
                                              {248, "cuMemcpy_v2"},
                                              {249, "cuMemsetD8_v2"},
                                              {250, "cuMemsetD16_v2"},
                                              {251, "cuMemsetD32_v2"},
                                              {252, "cuMemsetD2D8_v2"},
                                              {253, "cuMemsetD2D16_v2"},
                                              {254, "cuMemsetD2D32_v2"},
                                              {276, "cuMemcpyHtoD_v2"},
                                              {277, "cuMemcpyHtoDAsync_v2"},
                                              {278, "cuMemcpyDtoH_v2"},
                                              {279, "cuMemcpyDtoHAsync_v2"},
                                              {280, "cuMemcpyDtoD_v2"},
                                              {281, "cuMemcpyDtoDAsync_v2"},
                                              {282, "cuMemcpyAtoH_v2"},
                                              {283, "cuMemcpyAtoHAsync_v2"},
                                              {284, "cuMemcpyAtoD_v2"},
                                              {285, "cuMemcpyDtoA_v2"},
                                              {286, "cuMemcpyAtoA_v2"},
                                              {287, "cuMemcpy2D_v2"},
                                              {288, "cuMemcpy2DUnaligned_v2"},
                                              {289, "cuMemcpy2DAsync_v2"},
                                              {290, "cuMemcpy3D_v2"},
                                              {291, "cuMemcpy3DAsync_v2"},
                                              {292, "cuMemcpyHtoA_v2"},
                                              {293, "cuMemcpyHtoAAsync_v2"},
                                              {305, "cuMemcpy"},
                                              {306, "cuMemcpyAsync"},
                                              {318, "cuMemcpyPeer"},
                                              {319, "cuMemcpyPeerAsync"},
                                              {320, "cuMemcpy3DPeer"},
                                              {321, "cuMemcpy3DPeerAsync"},
                                              {397, "cuMemcpyHtoD_v2_ptds"},
                                              {398, "cuMemcpyDtoH_v2_ptds"},
                                              {399, "cuMemcpyDtoD_v2_ptds"},
                                              {400, "cuMemcpyDtoA_v2_ptds"},
                                              {401, "cuMemcpyAtoD_v2_ptds"},
                                              {402, "cuMemcpyHtoA_v2_ptds"},
                                              {403, "cuMemcpyAtoH_v2_ptds"},
                                              {404, "cuMemcpyAtoA_v2_ptds"},
                                              {405, "cuMemcpy2D_v2_ptds"},
                                              {406, "cuMemcpy2DUnaligned_v2_ptds"},
                                              {407, "cuMemcpy3D_v2_ptds"},
                                              {408, "cuMemcpy_ptds"},
                                              {409, "cuMemcpyPeer_ptds"},
                                              {410, "cuMemcpy3DPeer_ptds"},
                                              {411, "cuMemsetD8_v2_ptds"},
                                              {412, "cuMemsetD16_v2_ptds"},
                                              {413, "cuMemsetD32_v2_ptds"},
                                              {414, "cuMemsetD2D8_v2_ptds"},
                                              {415, "cuMemsetD2D16_v2_ptds"},
                                              {416, "cuMemsetD2D32_v2_ptds"},
                                              {418, "cuMemcpyAsync_ptsz"},
                                              {419, "cuMemcpyHtoAAsync_v2_ptsz"},
                                              {420, "cuMemcpyAtoHAsync_v2_ptsz"},
                                              {421, "cuMemcpyHtoDAsync_v2_ptsz"},
                                              {422, "cuMemcpyDtoHAsync_v2_ptsz"},
                                              {423, "cuMemcpyDtoDAsync_v2_ptsz"},
                                              {424, "cuMemcpy2DAsync_v2_ptsz"},
                                              {425, "cuMemcpy3DAsync_v2_ptsz"},
                                              {426, "cuMemcpyPeerAsync_ptsz"},
                                              {427, "cuMemcpy3DPeerAsync_ptsz"},
                                              {428, "cuMemsetD8Async_ptsz"},
                                              {429, "cuMemsetD16Async_ptsz"},
                                              {430, "cuMemsetD32Async_ptsz"},
                                              {431, "cuMemsetD2D8Async_ptsz"},
                                              {432, "cuMemsetD2D16Async_ptsz"},
                                              {433, "cuMemsetD2D32Async_ptsz"},
                                              {776, "cuMemcpyBatchAsync"},
                                              {777, "cuMemcpyBatchAsync_ptsz"},
                                              {778, "cuMemcpy3DBatchAsync"},
                                              {779, "cuMemcpy3DBatchAsync_ptsz"},
                                              {796, "cuMemcpyBatchAsync_v2"},
                                              {797, "cuMemcpyBatchAsync_v2_ptsz"},
                                              {798, "cuMemcpy3DBatchAsync_v2"},
                                              {799, "cuMemcpy3DBatchAsync_v2_ptsz"},
                                              {837, "cuMemcpyWithAttributesAsync"},
                                              {838, "cuMemcpyWithAttributesAsync_ptsz"},
                                              {839, "cuMemcpy3DWithAttributesAsync"},
                                              {840, "cuMemcpy3DWithAttributesAsync_ptsz"}};

// Calls that take memory of a GPU and give it back, map it and unmap it. Ascending.
inline constexpr DriverCall allocation_calls[] = {{243, "cuMemAlloc_v2"},
                                                  {244, "cuMemAllocPitch_v2"},
                                                  {245, "cuMemFree_v2"},
                                                  {371, "cuMemAllocManaged"},
                                                  {549, "cuMemCreate"},
                                                  {550, "cuMemRelease"},
                                                  {551, "cuMemMap"},
                                                  {552, "cuMemUnmap"},
                                                  {565, "cuMemRetainAllocationHandle"},
                                                  {598, "cuMemAllocAsync"},
                                                  {599, "cuMemAllocAsync_ptsz"},
                                                  {600, "cuMemFreeAsync"},
                                                  {601, "cuMemFreeAsync_ptsz"},
                                                  {611, "cuMemAllocFromPoolAsync"},
                                                  {612, "cuMemAllocFromPoolAsync_ptsz"}};

template <size_t N>
consteval std::array<uint32_t, N> cbids_of(const DriverCall (&calls)[N]) {
  std::array<uint32_t, N> cbids{};
  std::ranges::transform(calls, cbids.begin(), &DriverCall::cbid);
  return cbids;
}

inline constexpr auto launch_cbids = cbids_of(launch_calls);
inline constexpr auto memory_cbids = cbids_of(memory_calls);
inline constexpr auto graph_cbids = cbids_of(graph_calls);
inline constexpr auto module_cbids = cbids_of(module_calls);
inline constexpr auto holding_cbids = cbids_of(holding_calls);
inline constexpr auto allocation_cbids = cbids_of(allocation_calls);
static_assert(std::ranges::is_sorted(launch_cbids) && std::ranges::is_sorted(memory_cbids));
static_assert(std::ranges::is_sorted(graph_cbids) && std::ranges::is_sorted(module_cbids));
static_assert(std::ranges::is_sorted(holding_cbids) && std::ranges::is_sorted(allocation_cbids));

[[nodiscard]] constexpr bool is_launch(uint32_t cbid) noexcept {
  return std::ranges::binary_search(launch_cbids, cbid);
}
[[nodiscard]] constexpr bool is_memory(uint32_t cbid) noexcept {
  return std::ranges::binary_search(memory_cbids, cbid);
}

[[nodiscard]] constexpr bool is_module_call(uint32_t cbid) noexcept {
  return std::ranges::binary_search(module_cbids, cbid);
}

// Whether only instruction sampling follows this call.
[[nodiscard]] constexpr bool is_for_sampling(uint32_t cbid) noexcept {
  return is_module_call(cbid) || std::ranges::binary_search(holding_cbids, cbid);
}

enum class AllocationCall { None, Take, TakePitched, GiveBack, Create, Release, Map, Unmap, Retain };
[[nodiscard]] constexpr AllocationCall allocation_call(uint32_t cbid) noexcept {
  if (!std::ranges::binary_search(allocation_cbids, cbid)) return AllocationCall::None;
  switch (cbid) {
    case 244:
      return AllocationCall::TakePitched;
    case 245:
    case 600:
    case 601:
      return AllocationCall::GiveBack;
    case 549:
      return AllocationCall::Create;
    case 550:
      return AllocationCall::Release;
    case 551:
      return AllocationCall::Map;
    case 552:
      return AllocationCall::Unmap;
    case 565:
      return AllocationCall::Retain;
    default:
      return AllocationCall::Take;
  }
}
// Whether such a call is work of a stream, so that a capture records it.
[[nodiscard]] constexpr bool is_in_stream(uint32_t cbid) noexcept { return cbid >= 598; }

[[nodiscard]] constexpr bool is_graph_launch(uint32_t cbid) noexcept { return cbid == 514 || cbid == 515; }

enum class GraphCall { None, BeginCapture, EndCapture, Instantiate, Update };
[[nodiscard]] constexpr GraphCall graph_call(uint32_t cbid) noexcept {
  const auto found = std::ranges::find(graph_calls, cbid, &DriverCall::cbid);
  if (found == std::end(graph_calls)) return GraphCall::None;
  if (found->name.starts_with("cuStreamBeginCapture")) return GraphCall::BeginCapture;
  if (found->name.starts_with("cuStreamEndCapture")) return GraphCall::EndCapture;
  return found->name.starts_with("cuGraphInstantiate") ? GraphCall::Instantiate : GraphCall::Update;
}

// Where a launch's parameters name the kernel: the offset of the function handle, kNoFunction when there is none.
inline constexpr size_t kNoFunction = SIZE_MAX;
[[nodiscard]] constexpr size_t function_offset(uint32_t cbid) noexcept {
  constexpr uint32_t kAfterConfiguration[] = {652, 653};     // cuLaunchKernelEx(config, function, ...)
  constexpr uint32_t kOfSeveralKernels[] = {480, 514, 515};  // several devices, graphs
  if (!is_launch(cbid) || std::ranges::count(kOfSeveralKernels, cbid) != 0) return kNoFunction;
  return std::ranges::count(kAfterConfiguration, cbid) != 0 ? sizeof(void*) : 0;
}

inline constexpr std::span<const DriverCall> call_tables[] = {launch_calls, memory_calls,  graph_calls,
                                                              module_calls, holding_calls, allocation_calls};

// "" when the id is in no table.
[[nodiscard]] constexpr std::string_view driver_call_name(uint32_t cbid) noexcept {
  for (const auto& table : call_tables) {
    if (const auto found = std::ranges::find(table, cbid, &DriverCall::cbid); found != table.end()) return found->name;
  }
  return "";
}

// The id of a call in one of the tables; any other name does not compile.
[[nodiscard]] consteval uint32_t cbid_of(std::string_view name) {
  for (const auto& table : call_tables) {
    if (const auto found = std::ranges::find(table, name, &DriverCall::name); found != table.end()) return found->cbid;
  }
  throw "not a call of these tables";
}

}  // namespace bragg::cupti
