// Boxes of matrices that the copy engine brings into shared memory by tensor maps (TMA). They are there from compute
// capability 9.0 on; rKernels that use them say so in their manifests.
#pragma once

namespace rt::detail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
RT_DEVICE void prefetch_map(const char* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
RT_DEVICE void fill_box(char* stage, uint64_t* full, const char* map, const char*, const TiledMatrix&, uint32_t column,
                        uint32_t row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(stage)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(full))
      : "memory");
}
RT_DEVICE void fill_patch(char* stage, uint64_t* full, const char* map, const char*, const TiledMatrix&,
                          uint32_t channel, const Position& p, uint32_t tap_x, uint32_t tap_y) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5}], "
      "[%6], {%7, %8};" ::"r"(shared_address(stage)),
      "l"(map), "r"(channel), "r"(p.x), "r"(p.y), "r"(p.image), "r"(shared_address(full)),
      "h"(static_cast<uint16_t>(tap_x)), "h"(static_cast<uint16_t>(tap_y))
      : "memory");
}
RT_DEVICE void boxes_sent(uint64_t* full, uint32_t bytes) {
  asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}" ::"r"(shared_address(full)),
               "r"(bytes)
               : "memory");
}
// One fence for all memory would have a barrier for the whole device in front of it.
RT_DEVICE void stored_before_copies() {
  asm volatile("fence.proxy.async.global;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
#endif

}  // namespace rt::detail
