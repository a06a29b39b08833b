// The time model against published products, and the table that it is fitted to.
#include "device/time_fit.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/error.h"
#include "tests/catch.h"

namespace {

using namespace ttrt;

const std::string table = TTC_TEST_DATA "/gemm.csv";

std::vector<GemmRow> rows_of(const std::string& board) {
  std::vector<GemmRow> out;
  for (const GemmRow& row : read_gemm_rows(table))
    if (profile_of(row, table).name == board && row.cycles > 0 && !row.config.starts_with("single")) out.push_back(row);
  return out;
}

std::string refusal(const std::string& content) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("time_fit_test." + std::to_string(getpid()) + ".csv");
  std::ofstream(path) << content;
  try {
    for (const GemmRow& row : read_gemm_rows(path)) profile_of(row, path);
    std::filesystem::remove(path);
  } catch (const ttc::Error& error) {
    std::filesystem::remove(path);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("shapes that the model was not fitted to are predicted within what a user may count on", "[time]") {
  for (const auto& [board, tuned, library] : {std::tuple{"n150", 0.10, 0.10}, {"p150", 0.05, 0.08}}) {
    const TimeFit fit = fit_rates(rows_of(board), find_profile(board), table);
    for (const GemmErrors& e : fit.errors) {
      INFO(board << " " << e.grid_x << "x" << e.grid_y << " " << e.config);
      CHECK(e.rows >= 20);
      CHECK(e.cross_validated < (e.config == "tuned" ? tuned : library));
      CHECK(e.mean < (e.config == "tuned" ? tuned : library));
    }
    // What the profiles hold is what the fit gives.
    for (const FittedRate& rate : fitted_rates()) {
      INFO(board << " " << rate.key);
      CHECK(fit.profile.*rate.member == Approx(find_profile(board).*rate.member).epsilon(0.02));
    }
  }
}

TEST_CASE("every row of the table has a prediction, and a bound that is one of the device's", "[time]") {
  const std::vector<GemmRow> rows = read_gemm_rows(table);
  CHECK(rows.size() == 991);
  double single = 0;
  for (const GemmRow& row : rows) {
    const Time time = predict(row, profile_of(row, table));
    INFO("line " << row.line);
    CHECK(time.cycles > 0);
    CHECK(time.bound != Bound::pcie);
    if (row.config.starts_with("single")) single += std::abs(time.cycles / row.cycles - 1) / 4;
  }
  CHECK(single < 0.10);  // one core by itself, which the fit has not seen
}

TEST_CASE("out of the box the library takes its own fidelity", "[time]") {
  for (const GemmRow& row : read_gemm_rows(table)) {
    if (row.config == "oob")
      CHECK(fidelity_of(row) == (row.shape.a == DataType::bfloat16 ? MathFidelity::HiFi2 : MathFidelity::LoFi));
    else
      CHECK(to_string(fidelity_of(row)) == row.fidelity);
  }
}

TEST_CASE("a table that is none says where", "[time]") {
  const std::string header = "arch,m,k,n,dtype,fidelity,grid,config\n";
  CHECK(refusal("") != "");
  CHECK(refusal(header).find("no rows") != std::string::npos);
  CHECK(refusal("arch,m,k,n,dtype\n").find("fidelity") != std::string::npos);
  CHECK(refusal(header + "n150,512,1024,1024,BFLOAT16,HiFi2,8x8,oob\n") == "");
  CHECK(refusal(header + "n150,512,0,1024,BFLOAT16,HiFi2,8x8,oob\n").find("line 2: \"0\" is no k") !=
        std::string::npos);
  CHECK(refusal(header + "n150,512,8,1024,FP7,HiFi2,8x8,oob\n").find("\"FP7\" is no dtype") != std::string::npos);
  CHECK(refusal(header + "n150,512,8,1024,BFLOAT16,HiFi9,8x8,oob\n").find("fidelity") != std::string::npos);
  CHECK(refusal(header + "n150,512,8,1024,BFLOAT16,HiFi2,8,oob\n").find("grid") != std::string::npos);
  CHECK(refusal(header + "n151,512,8,1024,BFLOAT16,HiFi2,8x8,oob\n").find("line 2") != std::string::npos);
}
