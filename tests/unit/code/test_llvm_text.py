from __future__ import annotations

from bragg.code.llvm_text import places_of_llvm
from bragg.code.source_place import SourcePlace

TEXT = """\
; a comment !dbg !7
define ptx_kernel void @kernel(ptr addrspace(1) %0) #0 !dbg !4 {
  %6 = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !7
  %43 = tail call i32 asm sideeffect "ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l"(ptr %28) #3, !dbg !7
  %59 = fmul float %44, 2.000000e+00, !dbg !14
  ret void
}
!1 = !DIFile(filename: "train.py", directory: "/home/me")
!2 = !DIFile(filename: "/x/triton/language/standard.py", directory: "/home/me")
!4 = distinct !DISubprogram(name: "kernel", linkageName: "kernel", scope: !1, file: !1, line: 8, unit: !0)
!7 = !DILocation(line: 9, column: 25, scope: !4)
!14 = !DILocation(line: 6, column: 15, scope: !15, inlinedAt: !16)
!15 = distinct !DILexicalBlockFile(scope: !4, file: !2, discriminator: 0)
!16 = !DILocation(line: 12, column: 14, scope: !4)
"""


def test_instructions_have_the_place_of_their_debug_location_and_its_callers() -> None:
    places = places_of_llvm(TEXT)
    own = (SourcePlace("/home/me/train.py", 9, 25),)
    inlined = (SourcePlace("/x/triton/language/standard.py", 6, 15), SourcePlace("/home/me/train.py", 12, 14))
    assert places[:7] == [(), (), own, own, inlined, (), ()]
    assert not any(places[7:])


def test_damaged_locations_are_no_places() -> None:
    circle = "  ret void, !dbg !1\n!1 = !DILocation(line: 3, column: 1, scope: !2, inlinedAt: !1)\n!2 = !{}\n"
    assert places_of_llvm(circle) == [(), (), ()]
    assert places_of_llvm("  ret void, !dbg !9") == [()]
    lines = '  ret void, !dbg !1\n!1 = !DILocation(line: x, scope: !2)\n!2 = !DIFile(filename: "a.py", directory: "")'
    assert places_of_llvm(lines) == [(), (), ()]
