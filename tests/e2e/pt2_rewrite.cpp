// pt2_rewrite IN OUT: reads a .pt2 and writes it again, unchanged but for what the IR normalises. Exit 0 when reading
// the result gives the same IR; for test_pt2_roundtrip.py.
#include <cstdio>
#include <exception>

#include "torch/cpu_op.h"
#include "formats/pt2_read.h"
#include "formats/pt2_write.h"
#include "support/error.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    ttrt::install_torch_schemas();
    const auto model = ttc::read_pt2(argv[1]);
    ttc::write_pt2(*model, argv[2]);
    const auto again = ttc::read_pt2(argv[2]);
    if (ttc::ir::print(*model) == ttc::ir::print(*again)) return 0;
    std::fprintf(stderr, "%s: the rewritten file reads as another graph\n", argv[1]);
    return 1;
  } catch (const ttc::Error& error) {
    std::fputs(error.message().c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
