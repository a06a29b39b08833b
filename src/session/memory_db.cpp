// Tables as ttnn/ttnn/database.py lays them out. Operations are numbered from 1; a tensor is a value of the graph.
#include "session/memory_db.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "device/shard.h"
#include "executor/memory_plan.h"
#include "ir/arg_text.h"
#include "ir/node_counts.h"
#include "ir/node_name.h"
#include "ir/op_schema.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/progress.h"
#include "support/sqlite.h"

namespace ttc {
namespace {

using ttrt::ArchProfile;
using ttrt::BufferType;
using ttrt::TensorSpec;

constexpr const char* tables = R"(
CREATE TABLE devices (device_id int, num_y_cores int, num_x_cores int, num_y_compute_cores int, num_x_compute_cores int,
  worker_l1_size int, l1_num_banks int, l1_bank_size int, address_at_first_l1_bank int,
  address_at_first_l1_cb_buffer int, num_banks_per_storage_core int, num_compute_cores int, num_storage_cores int,
  total_l1_memory int, total_l1_for_tensors int, total_l1_for_interleaved_buffers int,
  total_l1_for_sharded_buffers int, cb_limit int);
CREATE TABLE operations (operation_id int UNIQUE, name text, duration float);
CREATE TABLE operation_arguments (operation_id int, name text, value text);
CREATE TABLE tensors (tensor_id int UNIQUE, shape text, dtype text, layout text, memory_config text, device_id int,
  address int, buffer_type int);
CREATE TABLE device_tensors (tensor_id int, device_id int, address int);
CREATE TABLE buffers (operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int,
  buffer_layout int);
CREATE TABLE captured_graph (operation_id int, captured_graph text);
CREATE TABLE nodes (operation_id int, unique_id int, node_operation_id int, name text);
CREATE TABLE edges (operation_id int, source_unique_id int, sink_unique_id int, source_output_index int,
  sink_input_index int, key int);
CREATE TABLE report_metadata (key text UNIQUE, value text);
CREATE TABLE errors (operation_id int, operation_name text, error_type text, error_message text, stack_trace text,
  timestamp text);
CREATE TABLE stack_traces (operation_id int, stack_trace text);
CREATE TABLE input_tensors (operation_id int, input_index int, tensor_id int);
CREATE TABLE output_tensors (operation_id int, output_index int, tensor_id int);
CREATE TABLE local_tensor_comparison_records (tensor_id int, golden_tensor_id int, matches int, desired_pcc float,
  actual_pcc float);
CREATE TABLE global_tensor_comparison_records (tensor_id int, golden_tensor_id int, matches int, desired_pcc float,
  actual_pcc float);
CREATE TABLE buffer_pages (operation_id int, device_id int, address int, core_y int, core_x int, bank_id int,
  page_index int, page_address int, page_size int, buffer_type int);
CREATE TABLE tensor_lifetime (tensor_id int UNIQUE, producer_operation_id int, last_use_operation_id int,
  deallocate_operation_id int, producer_source_file text, producer_source_line int, last_use_source_file text,
  last_use_source_line int);
CREATE INDEX idx_buffers_operation_id ON buffers (operation_id);
CREATE INDEX idx_buffer_pages_operation_id ON buffer_pages (operation_id);
CREATE INDEX idx_input_tensors_tensor_id ON input_tensors (tensor_id);
CREATE INDEX idx_output_tensors_tensor_id ON output_tensors (tensor_id);
)";

std::string shape_text(const TensorSpec& spec) {
  std::string out;
  for (const std::int64_t n : spec.logical) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "Shape([" + out + "])";
}

std::string memory_config(const TensorSpec& spec) {
  return "MemoryConfig(memory_layout=TensorMemoryLayout::" + std::string(to_string(spec.memory.layout)) +
         ",buffer_type=BufferType::" + std::string(to_string(spec.memory.buffer_type)) +
         ",shard_spec=std::nullopt,nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0)";
}

// A value on the device.
struct Tensor {
  int id = 0;
  const ir::Value* value = nullptr;
  TensorSpec spec;
  std::int64_t address = -1;
  int producer = 0;  // operation; 0: a weight or an input, there from the start
  int last_use = 0;  // operation
};

class Report {
 public:
  Report(std::span<const OpRow> rows, const ArchProfile& arch) : arch_(arch) {
    for (const OpRow& row : rows)  // what computes sizes is no operation there
      if (row.place != ttrt::OpPlace::cpu || ir::computes_tensors(*row.node)) rows_.push_back(row);
    for (std::size_t i = 0; i < rows_.size(); ++i) find_tensors(rows_[i], static_cast<int>(i) + 1);
    place(BufferType::dram);
    place(BufferType::l1);
  }

  void write(SqliteFile& file) const {
    file.execute(tables);
    write_device(file);
    write_tensors(file);
    write_operations(file);
    write_buffers(file);
    write_graphs(file);
    SqliteFile::Table(file, "report_metadata", 2).row({"generator", "ttc"});
  }

 private:
  void find_tensors(const OpRow& row, int operation) {
    inputs_.emplace_back();
    outputs_.emplace_back();
    std::size_t at = 0;
    for (const ir::Value* value : row.node->operands()) {
      if (!value->type.is_tensor()) continue;
      const auto known = by_value_.find(value);
      if (known == by_value_.end() && at < row.operands.size()) add(value, row.operands[at], 0);
      if (const auto now = by_value_.find(value); now != by_value_.end()) {
        Tensor& tensor = tensors_[now->second];
        tensor.last_use = operation;
        if (at < row.operand_addresses.size() && tensor.address < 0) tensor.address = row.operand_addresses[at];
        inputs_.back().push_back(now->second);
      }
      ++at;
    }
    const auto& results = row.node->results();
    for (std::size_t i = 0; i < results.size() && i < row.results.size(); ++i) {
      if (!by_value_.contains(results[i].get())) add(results[i].get(), row.results[i], operation);
      Tensor& tensor = tensors_[by_value_.at(results[i].get())];
      if (i < row.result_addresses.size()) tensor.address = row.result_addresses[i];
      outputs_.back().push_back(by_value_.at(results[i].get()));
    }
  }

  void add(const ir::Value* value, const TensorSpec& spec, int producer) {
    by_value_.emplace(value, tensors_.size());
    tensors_.push_back({.id = static_cast<int>(tensors_.size()) + 1,
                        .value = value,
                        .spec = spec,
                        .producer = producer,
                        .last_use = producer});
  }

  // Constants stay until the end, as do outputs.
  int end_of(const Tensor& tensor) const {
    const bool stays = tensor.producer == 0 || tensor.value->output_uses() > 0;
    return stays ? static_cast<int>(rows_.size()) : std::max(tensor.last_use, tensor.producer);
  }

  // Where nothing says where they are: what was there from the start first, then a region that values share.
  void place(BufferType type) {
    const std::int64_t alignment = type == BufferType::dram ? arch_.dram_alignment : arch_.l1_alignment;
    std::int64_t top = 0, first = type == BufferType::l1 ? arch_.l1_reserved : 0;
    std::vector<ttrt::PlannedValue> values;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      Tensor& tensor = tensors_[i];
      if (tensor.spec.memory.buffer_type != type || tensor.address >= 0) continue;
      const std::int64_t bytes = (ttrt::bytes_per_bank(arch_, tensor.spec) + alignment - 1) / alignment * alignment;
      if (tensor.producer == 0) {
        tensor.address = first + top;
        top += bytes;
      } else {
        values.push_back({.id = static_cast<int>(i), .bytes = bytes, .begin = tensor.producer, .end = end_of(tensor)});
      }
    }
    ttrt::plan_memory(values, alignment);
    for (const ttrt::PlannedValue& value : values)
      tensors_[static_cast<std::size_t>(value.id)].address = first + top + value.offset;
  }

  void write_device(SqliteFile& file) const {
    const std::int64_t base = arch_.l1_reserved + arch_.l1_kernel_bytes, bank = arch_.l1_bytes - base,
                       cores = arch_.cores();
    SqliteFile::Table(file, "devices", 18)
        .row({std::int64_t{0}, arch_.grid_y, arch_.grid_x, arch_.grid_y, arch_.grid_x, arch_.l1_bytes, cores, bank,
              base, base, std::int64_t{1}, cores, std::int64_t{0}, arch_.l1_bytes * cores, bank * cores, bank * cores,
              bank * cores, bank});
  }

  void write_tensors(SqliteFile& file) const {
    SqliteFile::Table all(file, "tensors", 8), placed(file, "device_tensors", 3), lives(file, "tensor_lifetime", 8);
    for (const Tensor& t : tensors_) {
      const std::int64_t id = t.id;
      all.row({id, shape_text(t.spec), "DataType." + upper(to_string(t.spec.dtype)),
               "Layout." + std::string(to_string(t.spec.layout)), memory_config(t.spec), std::int64_t{0}, t.address,
               static_cast<std::int64_t>(t.spec.memory.buffer_type)});
      placed.row({id, std::int64_t{0}, t.address});
      const auto [made_in, made_at] = source_of(t.producer);
      const auto [used_in, used_at] = source_of(t.last_use);
      lives.row({id, number_or_null(t.producer), number_or_null(t.last_use),
                 t.producer == 0 ? SqliteFile::Cell() : SqliteFile::Cell(std::int64_t{end_of(t)}), made_in, made_at,
                 used_in, used_at});
    }
  }

  static SqliteFile::Cell number_or_null(int number) {
    return number == 0 ? SqliteFile::Cell() : SqliteFile::Cell(std::int64_t{number});
  }

  // "bert.py:212" of an operation in two.
  std::pair<SqliteFile::Cell, SqliteFile::Cell> source_of(int operation) const {
    if (operation == 0) return {};
    const std::string& source = rows_[static_cast<std::size_t>(operation) - 1].node->provenance->source;
    const std::size_t colon = source.rfind(':');
    if (colon == std::string::npos || colon + 1 == source.size()) return {};
    return {source.substr(0, colon), std::int64_t{std::atoi(source.c_str() + colon + 1)}};
  }

  static std::string name_of(const OpRow& row) {
    const std::string& op = row.node->op();
    if (row.place == ttrt::OpPlace::cpu) return "torch." + op;
    const ttrt::Role role = ttrt::role_of(op);
    if (ttrt::is_transfer(role)) return role == ttrt::Role::to_device ? "ttnn.from_torch" : "ttnn.to_torch";
    return "ttnn." + op.substr(op.starts_with("tt.") ? 3 : 0);
  }

  void write_operations(SqliteFile& file) const {
    SqliteFile::Table operations(file, "operations", 3), arguments(file, "operation_arguments", 3),
        traces(file, "stack_traces", 2), in(file, "input_tensors", 3), out(file, "output_tensors", 3);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const OpRow& row = rows_[i];
      const auto id = static_cast<std::int64_t>(i) + 1;
      operations.row({id, name_of(row), (row.place == ttrt::OpPlace::cpu ? row.wall_us : row.time.us) * 1e-6});
      const ir::OpSchema* schema = row.node->schema();
      for (std::size_t a = 0; a < row.node->args().size(); ++a)
        arguments.row({id, schema != nullptr && a < schema->args.size() ? schema->args[a].name : std::to_string(a),
                       ir::arg_text(row.node->args()[a])});
      for (const auto& [name, value] : facts(row)) arguments.row({id, name, value});
      traces.row({id, stack_of(row)});
      for (std::size_t t = 0; t < inputs_[i].size(); ++t)
        in.row({id, static_cast<std::int64_t>(t), std::int64_t{tensors_[inputs_[i][t]].id}});
      for (std::size_t t = 0; t < outputs_[i].size(); ++t)
        out.row({id, static_cast<std::int64_t>(t), std::int64_t{tensors_[outputs_[i][t]].id}});
    }
  }

  // What ttc knows beside the call.
  static std::vector<std::pair<std::string, std::string>> facts(const OpRow& row) {
    std::vector<std::pair<std::string, std::string>> out = {{"ttc.node", ir::node_name(*row.node)}};
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) out.emplace_back(name, value);
    };
    add("ttc.module", row.node->provenance->module_path);
    add("ttc.kernel", row.kernel);
    add("ttc.fidelity", row.fidelity);
    if (row.split.product) add("ttc.program", to_string(row.split.product->program));
    if (row.time.cycles > 0) add("ttc.bound", std::string(to_string(row.time.bound)));
    if (row.on_device()) add("ttc.cores", std::to_string(row.split.cores));
    return out;
  }

  // The node's line in the model, below the modules around it.
  static std::string stack_of(const OpRow& row) {
    std::string out;
    for (const auto& [path, type] : row.node->provenance->stack)
      out += "  module " + (path.empty() ? "(root)" : path) + " (" + type + ")\n";
    const std::string& source = row.node->provenance->source;
    const std::size_t colon = source.rfind(':');
    if (colon != std::string::npos)
      out = "File \"" + source.substr(0, colon) + "\", line " + source.substr(colon + 1) + ", in " +
            ir::node_name(*row.node) + "\n" + out;
    return out;
  }

  // Every buffer while it lives, and where the pages are of those that an operation touches.
  void write_buffers(SqliteFile& file) const {
    SqliteFile::Table buffers(file, "buffers", 6), pages(file, "buffer_pages", 10);
    Phase phase("writing what lies where", rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i, phase.advance()) {
      const int id = static_cast<int>(i) + 1;
      std::set<std::pair<BufferType, std::int64_t>> seen;  // views lie where their operands do
      for (const Tensor& t : tensors_) {
        if (t.address < 0 || t.producer > id || end_of(t) < id) continue;
        if (!seen.emplace(t.spec.memory.buffer_type, t.address).second) continue;
        buffers.row({std::int64_t{id}, std::int64_t{0}, t.address, ttrt::bytes_per_bank(arch_, t.spec),
                     static_cast<std::int64_t>(t.spec.memory.buffer_type),
                     static_cast<std::int64_t>(t.spec.memory.layout)});
      }
      std::set<std::size_t> touched(inputs_[i].begin(), inputs_[i].end());
      touched.insert(outputs_[i].begin(), outputs_[i].end());
      for (const std::size_t t : touched) write_pages(pages, id, tensors_[t]);
    }
  }

  void write_pages(SqliteFile::Table& pages, std::int64_t operation, const Tensor& t) const {
    if (t.address < 0) return;
    const std::int64_t size = ttrt::page_bytes(t.spec);
    for (std::int64_t page = 0, count = size > 0 ? t.spec.nbytes() / size : 0; page < count; ++page) {
      const ttrt::PageLocation at = ttrt::locate_page(t.spec, arch_, t.address, page);
      pages.row({operation, std::int64_t{0}, t.address, at.core_y, at.core_x, at.bank, page, at.address, size,
                 static_cast<std::int64_t>(t.spec.memory.buffer_type)});
    }
  }

  OrderedJson tensor_node(const Tensor& t, int counter) const {
    return {{"counter", counter},
            {"node_type", "tensor"},
            {"params",
             {{"tensor_id", std::to_string(t.id)},
              {"shape", shape_text(t.spec)},
              {"dtype", "DataType::" + upper(to_string(t.spec.dtype))},
              {"layout", "Layout::" + std::string(to_string(t.spec.layout))},
              {"memory_config", memory_config(t.spec)},
              {"device_id", "0"},
              {"address", std::to_string(t.address)},
              {"buffer_type", to_string(t.spec.memory.buffer_type)}}},
            {"connections", OrderedJson::array()}};
  }

  // The call of one operation: its tensors, the circular buffers of its program, the buffers of its results.
  OrderedJson graph_of(std::size_t i) const {
    const OpRow& row = rows_[i];
    OrderedJson nodes = OrderedJson::array();
    const auto add = [&](const char* type, OrderedJson params, std::vector<int> connections) -> int {
      const int counter = static_cast<int>(nodes.size());
      nodes.push_back(
          {{"counter", counter}, {"node_type", type}, {"params", std::move(params)}, {"connections", connections}});
      return counter;
    };
    const OrderedJson none = OrderedJson::object();
    const std::string name = row.on_device() ? program_name(row) : name_of(row);
    add("capture_start", none, {1});
    std::vector<int> read;
    const int start = add("function_start", {{"name", name}, {"inputs", std::to_string(inputs_[i].size())}}, {});
    for (const std::size_t t : inputs_[i]) {
      read.push_back(static_cast<int>(nodes.size()));
      nodes.push_back(tensor_node(tensors_[t], read.back()));
      nodes.back()["connections"].push_back(start);
    }
    nodes[static_cast<std::size_t>(start)]["input_tensors"] = read;
    add("circular_buffer_deallocate_all", none, {});
    if (const std::int64_t bytes = row.l1_bytes; row.on_device() && bytes > 0) {
      const std::int64_t rows = (row.split.cores + arch_.grid_x - 1) / arch_.grid_x,
                         x = std::min(row.split.cores, arch_.grid_x);
      add("circular_buffer_allocate",
          {{"address", std::to_string(arch_.l1_reserved + arch_.l1_kernel_bytes)},
           {"size", std::to_string(bytes)},
           {"core_range_set", "{[(x=0,y=0) - (x=" + std::to_string(x - 1) + ",y=" + std::to_string(rows - 1) + ")]}"},
           {"globally_allocated", "0"},
           {"device_id", "0"}},
          {});
    }
    std::vector<int> made;
    for (const std::size_t t : outputs_[i]) {
      const Tensor& tensor = tensors_[t];
      const OrderedJson params = {{"type", to_string(tensor.spec.memory.buffer_type)},
                                  {"layout", to_string(tensor.spec.memory.layout)},
                                  {"size", std::to_string(tensor.spec.nbytes())},
                                  {"page_size", std::to_string(ttrt::page_bytes(tensor.spec))},
                                  {"address", std::to_string(tensor.address)},
                                  {"device_id", "0"}};
      const int buffer = add("buffer", params, {});
      add("buffer_allocate", params, {buffer});
      made.push_back(static_cast<int>(nodes.size()));
      nodes.push_back(tensor_node(tensor, made.back()));
    }
    const int end = add("function_end", {{"name", name}}, made);
    nodes[static_cast<std::size_t>(start)]["connections"].push_back(end);
    add("capture_end", none, {});
    return nodes;
  }

  void write_graphs(SqliteFile& file) const {
    SqliteFile::Table graphs(file, "captured_graph", 2), nodes(file, "nodes", 4), edges(file, "edges", 6);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto id = static_cast<std::int64_t>(i) + 1;
      const OrderedJson graph = graph_of(i);
      graphs.row({id, graph.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)});
      std::int64_t key = 0;
      for (const OrderedJson& node : graph) {
        const auto counter = node["counter"].get<std::int64_t>();
        nodes.row({id, counter, counter, node["node_type"].get<std::string>()});
        std::int64_t output = 0;
        for (const OrderedJson& to : node["connections"])
          edges.row({id, counter, to.get<std::int64_t>(), output++, std::int64_t{0}, key++});
      }
    }
  }

  std::vector<OpRow> rows_;
  const ArchProfile& arch_;
  std::vector<Tensor> tensors_;
  std::map<const ir::Value*, std::size_t> by_value_;        // index into tensors_
  std::vector<std::vector<std::size_t>> inputs_, outputs_;  // by operation
};

}  // namespace

void write_memory_db(const std::string& folder, const std::string& name, std::span<const OpRow> rows,
                     const ArchProfile& arch) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw usage_error(folder + ": cannot be made a folder: " + failed.message());
  // Under another name until it is whole.
  const fs::path made = fs::path(folder) / "db.sqlite.part", target = fs::path(folder) / "db.sqlite";
  fs::remove(made, failed);
  {
    SqliteFile file(made.string());
    Report(rows, arch).write(file);
    file.commit();
  }
  fs::rename(made, target, failed);
  if (failed) throw usage_error(target.string() + ": cannot be written: " + failed.message());
  write_file((fs::path(folder) / "config.json").string(), OrderedJson{{"report_name", name},
                                                                      {"enable_logging", true},
                                                                      {"enable_graph_report", true},
                                                                      {"enable_detailed_buffer_report", true},
                                                                      {"enable_detailed_tensor_report", false},
                                                                      {"enable_comparison_mode", false}}
                                                                  .dump(2) +
                                                              "\n");
}

}  // namespace ttc
