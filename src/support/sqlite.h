// A new SQLite file that rows are written to, in one transaction.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace ttc {

class SqliteFile {
 public:
  using Cell = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

  // Throws ttc::Error (usage) where the file cannot be written, like everything here.
  explicit SqliteFile(std::string path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  void execute(const std::string& statements);
  void commit();

  // Rows of one table.
  class Table {
   public:
    Table(SqliteFile& file, const std::string& name, int columns);
    ~Table();
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    void row(std::initializer_list<Cell> cells);

   private:
    SqliteFile& file_;
    sqlite3_stmt* statement_ = nullptr;
  };

 private:
  void check(int code) const;
  std::string path_;
  sqlite3* database_ = nullptr;
};

}  // namespace ttc
