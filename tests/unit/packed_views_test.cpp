// Packed weights on the device are the bytes of the file: nothing is copied, and no kernel reads beyond them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "executor/executor.h"
#include "session/compile.h"
#include "session/steps.h"
#include "tests/catch.h"
#include "tests/unit/session_test_util.h"

namespace {

using namespace ttc;
using ttc::test::models;

// The bytes at the end of a page behind which there is no memory.
std::shared_ptr<ir::Storage> before_nothing(const ir::Storage& from) {
  const auto [owner, data] = from.load();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t size = (from.bytes + page - 1) / page * page;
  auto* const mapped =
      static_cast<std::byte*>(mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mapped != MAP_FAILED);
  std::byte* const begin = mapped + (size - from.bytes);
  std::memcpy(begin, data, from.bytes);
  REQUIRE(mprotect(mapped, size, PROT_READ) == 0);
  REQUIRE(mprotect(mapped + size, page, PROT_NONE) == 0);
  auto storage = std::make_shared<ir::Storage>();
  storage->bytes = from.bytes;
  storage->data = begin;
  storage->owner =
      std::shared_ptr<const void>(mapped, [size, page](const void* at) { munmap(const_cast<void*>(at), size + page); });
  return storage;
}

}  // namespace

TEST_CASE("packed weights stay where the file has them, and nothing reads beyond them") {
  for (const std::string name : {"bert_small", "vit_small"})
    for (const char* format : {"float32", "bfloat16", "bfloat8_b", "bfloat4_b"}) {
      INFO(name << " " << format);
      CompileSettings settings;
      settings.io = models + name + ".io.safetensors";
      settings.weight_dtype = {std::string("*=") + format};
      const auto compile = [&] { return compile_source(ModelSource(models + name + ".pt2"), settings).model; };
      std::shared_ptr<ir::Model> model = compile();
      std::size_t guarded = 0;
      for (auto& [target, weight] : model->weights)
        if (weight.dtype == DType::u8 && weight.storage->bytes % 64 == 0) {
          weight.storage = before_nothing(*weight.storage);
          ++guarded;
        }
      CHECK(guarded > 5);
      InputOptions inputs;
      inputs.io = settings.io;
      const std::vector<Case> cases = load_cases(*model, inputs);
      for (const ttrt::Numerics numerics : {ttrt::Numerics::fast, ttrt::Numerics::exact}) {
        ttrt::Executor viewed(model, {.numerics = numerics}), plain(compile(), {.numerics = numerics});
        const auto a = viewed.run(cases[0].inputs), b = plain.run(cases[0].inputs);
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          const auto x = contiguous(*a[i].get_if<ttrt::HostTensor>()), y = contiguous(*b[i].get_if<ttrt::HostTensor>());
          REQUIRE(x.nbytes() == y.nbytes());
          CHECK(std::memcmp(x.data, y.data, static_cast<std::size_t>(x.nbytes())) == 0);
        }
      }
    }
}
