// Runs a model through the installed library and checks what came out, its errors too.
//   user MODEL.pt2 (BERT: three int64 inputs [2, 10], two float outputs [2, 10, 64] and [2, 64])
#include <ttrt/ttrt.h>

#include <cmath>
#include <cstdio>
#include <numeric>

#define EXPECT(condition)                                        \
  if (!(condition)) {                                            \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    return 1;                                                    \
  }

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  const ttrt::Model model = ttrt::Model::load(argv[1]);
  EXPECT(model.inputs().size() == 3);
  EXPECT(model.output_count() == 2);
  EXPECT(!model.is_rewritten());

  ttrt::SessionOptions options;
  options.device = false;
  ttrt::Session session(model, options);
  std::vector<std::int64_t> ids(20), ones(20, 1), zeros(20, 0);
  std::iota(ids.begin(), ids.end(), 1);
  const std::vector<std::int64_t> shape{2, 10};
  const auto input = [&](std::vector<std::int64_t>& values) {
    return ttrt::Tensor::view(ttrt::ElementType::int64, shape, values.data());
  };
  const std::vector<ttrt::Tensor> by_position{input(ids), input(ones), input(zeros)};
  const auto outputs = session.run(by_position);
  EXPECT(outputs.size() == 2);
  EXPECT(outputs[0].type == ttrt::ElementType::float32);
  EXPECT((outputs[0].shape == std::vector<std::int64_t>{2, 10, 64}));
  double sum = 0;
  for (std::int64_t i = 0; i < outputs[0].numel(); ++i) sum += std::abs(outputs[0].as<float>()[i]);
  EXPECT(std::isfinite(sum) && sum > 1);

  // Without a device there is nowhere to keep it: the same tensor, on the host.
  const auto kept = session.run_keeping(by_position, {0});
  EXPECT(kept[0].resident == nullptr);
  EXPECT(session.fetch(kept[0]).as<float>()[3] == outputs[0].as<float>()[3]);
  EXPECT(session.report().to_host == 0);
  try {
    session.run_keeping(by_position, {2});
    EXPECT(false);
  } catch (const ttrt::Error& error) {
    EXPECT(error.kind() == ttrt::Error::Kind::usage);
  }

  const auto names = model.inputs();
  const auto by_name =
      session.run({{names[0].name, by_position[0]}, {names[1].name, by_position[1]}, {names[2].name, by_position[2]}});
  for (std::int64_t i = 0; i < outputs[1].numel(); ++i) EXPECT(outputs[1].as<float>()[i] == by_name[1].as<float>()[i]);

  try {
    session.run({by_position[0]});
    EXPECT(false);
  } catch (const ttrt::Error& error) {
    EXPECT(error.kind() == ttrt::Error::Kind::usage);
  }
  try {
    ttrt::Model::load("/nonexistent.pt2");
    EXPECT(false);
  } catch (const ttrt::Error& error) {
    EXPECT(error.kind() == ttrt::Error::Kind::bad_file);
  }
  std::printf("ok, ttrt %s\n", ttrt::version());
  return 0;
}
