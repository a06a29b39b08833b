// The graph as JSON in pieces, and the thread that reads each piece back for the hash while the next is made.
#include "formats/pt2_graph_text.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "formats/pt2_read_graph.h"
#include "formats/seal.h"

namespace ttc {
// Parts on their way to the thread that reads them, in batches of which only few stand in memory. Where there is no
// thread to be had, a part is read as it comes.
class Pt2GraphText::ReadBack {
 public:
  enum class What : std::uint8_t { input, node, outputs };
  // One call of Pt2GraphParts; `spec`: the specs where it is the outputs.
  struct Part {
    What what;
    Json json;
    Pt2TypeEntries types;
    Json spec;
  };

  static std::unique_ptr<ReadBack> begin() {
    auto out = std::make_unique<ReadBack>();
    try {
      std::promise<std::string> hash;
      std::future<std::string> future = hash.get_future();
      out->thread_ = std::jthread([out = out.get(), hash = std::move(hash)]() mutable { out->run(std::move(hash)); });
      out->hash_ = std::move(future);
    } catch (const std::system_error&) {
    }
    return out;
  }
  ~ReadBack() { end(); }

  void expect(std::size_t values) { reader_->expect(values); }  // before the first part

  void add(Part part) {
    if (!hash_.valid()) return read(part);
    batch_.push_back(std::move(part));
    if (batch_.size() == parts_of_batch) hand_over();
  }

  std::string hash() {
    if (!hash_.valid()) return graph_hash(*model_.graph);
    end();
    return hash_.get();
  }

  // Nothing more comes.
  void end() {
    hand_over();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  using Batch = std::vector<Part>;
  static constexpr std::size_t parts_of_batch = 64, most_batches = 16;

  // Whoever hands over lets go of parts that were read instead of waiting.
  void hand_over() {
    std::unique_lock lock(mutex_);
    while (!ended_ && batches_.size() >= most_batches) {
      if (read_.empty()) {
        changed_.wait(lock);
      } else {
        std::vector<Batch> read = std::exchange(read_, {});
        lock.unlock();
        read.clear();
        lock.lock();
      }
    }
    if (!ended_ && !batch_.empty()) batches_.push_back(std::move(batch_));
    batch_.clear();
    changed_.notify_all();
  }

  // The one that comes after `before`, which was read. Empty at the end.
  Batch next(Batch before) {
    std::unique_lock lock(mutex_);
    if (read_.size() < most_batches) read_.push_back(std::move(before));
    changed_.wait(lock, [&] { return ended_ || !batches_.empty(); });
    if (batches_.empty()) return {};
    Batch out = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return out;
  }

  void read(const Part& part) {
    if (part.what == What::input) reader_->read_input(part.json, part.types, part.spec);
    if (part.what == What::node) reader_->read_node(part.json, part.types);
    if (part.what == What::outputs) reader_->read_outputs(part.json, part.spec);
  }

  // The hash is there before what was read for it is gone.
  void run(std::promise<std::string> hash) {
    try {
      for (Batch batch = next({}); !batch.empty(); batch = next(std::move(batch)))
        for (const Part& part : batch) read(part);
      hash.set_value(graph_hash(*model_.graph));
    } catch (...) {
      hash.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      ended_ = true;  // whoever hands over must not wait
      changed_.notify_all();
    }
    reader_.reset();
    model_.graph.reset();
  }

  ir::Model model_;
  std::optional<Pt2GraphReader> reader_{model_};
  Batch batch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  std::vector<Batch> read_;
  bool ended_ = false;
  std::future<std::string> hash_;
  std::jthread thread_;  // last: its destructor waits
};

Pt2GraphText::Pt2GraphText(bool hashed) : read_back_(hashed ? ReadBack::begin() : nullptr) {}
Pt2GraphText::~Pt2GraphText() = default;

void Pt2GraphText::expect(std::size_t values) {
  if (read_back_) read_back_->expect(values);
}

void Pt2GraphText::input(Json input, Pt2TypeEntries types, Json spec) {
  inputs_.add(input);
  input_specs_.add(spec);
  add(types);
  if (read_back_) read_back_->add({ReadBack::What::input, std::move(input), std::move(types), std::move(spec)});
}

void Pt2GraphText::node(Json node, Pt2TypeEntries types) {
  nodes_.add(node);
  add(types);
  if (read_back_) read_back_->add({ReadBack::What::node, std::move(node), std::move(types), Json()});
}

void Pt2GraphText::outputs(Json outputs, Json specs) {
  outputs_ = outputs.dump();
  output_specs_ = specs.dump();
  if (!read_back_) return;
  read_back_->add({ReadBack::What::outputs, std::move(outputs), {}, std::move(specs)});
  read_back_->end();
}

void Pt2GraphText::add(const Pt2TypeEntries& types) {
  for (const auto& [table, name, type] : types) tables_[table].emplace_back(name, type);
}

std::string Pt2GraphText::text_of(Table table) {
  std::ranges::sort(table, {}, [](const auto& entry) -> const std::string& { return entry.first; });
  std::vector<JsonMember> members;
  members.reserve(table.size());
  for (const auto& [name, type] : table) members.emplace_back(name, type->text);
  return json_sorted_table(members);
}

// Texts are moved, one by one: what stands in an initializer list would be copied.
JsonPieces Pt2GraphText::graph() {
  std::map<std::string, JsonPieces> members;
  members["inputs"].push_back(std::move(inputs_).take());
  members["is_single_tensor_return"].emplace_back("false");
  members["nodes"].push_back(std::move(nodes_).take());
  members["outputs"].push_back(std::move(outputs_));
  for (const char* table : pt2_value_tables) members[table].push_back(text_of(std::exchange(tables_[table], {})));
  return json_object(std::move(members));
}

JsonPieces Pt2GraphText::signature() {
  std::map<std::string, JsonPieces> members;
  members["input_specs"].push_back(std::move(input_specs_).take());
  members["output_specs"].push_back(std::move(output_specs_));
  return json_object(std::move(members));
}

std::string Pt2GraphText::hash() { return read_back_ ? read_back_->hash() : std::string(); }

}  // namespace ttc
