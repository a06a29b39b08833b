// The few calls of SQLite's C library that writing takes.
#include "support/sqlite.h"

#include <sqlite3.h>

#include "support/error.h"

namespace ttc {

SqliteFile::SqliteFile(std::string path) : path_(std::move(path)) {
  check(sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr));
  // Whoever reads it waits for the end: a file that was not finished is of no use.
  execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
}

SqliteFile::~SqliteFile() { sqlite3_close(database_); }

void SqliteFile::check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  throw Error(Exit::usage, path_,
              std::string("cannot be written: ") + (database_ != nullptr ? sqlite3_errmsg(database_) : "no memory"));
}

void SqliteFile::execute(const std::string& statements) {
  check(sqlite3_exec(database_, statements.c_str(), nullptr, nullptr, nullptr));
}

void SqliteFile::commit() { execute("COMMIT"); }

SqliteFile::Table::Table(SqliteFile& file, const std::string& name, int columns) : file_(file) {
  std::string text = "INSERT INTO " + name + " VALUES (?";
  for (int i = 1; i < columns; ++i) text += ", ?";
  file_.check(sqlite3_prepare_v2(file_.database_, (text + ")").c_str(), -1, &statement_, nullptr));
}

SqliteFile::Table::~Table() { sqlite3_finalize(statement_); }

void SqliteFile::Table::row(std::initializer_list<Cell> cells) {
  int at = 0;
  for (const Cell& cell : cells) {
    ++at;
    if (const auto* whole = std::get_if<std::int64_t>(&cell))
      file_.check(sqlite3_bind_int64(statement_, at, *whole));
    else if (const auto* real = std::get_if<double>(&cell))
      file_.check(sqlite3_bind_double(statement_, at, *real));
    else if (const auto* text = std::get_if<std::string>(&cell))
      file_.check(sqlite3_bind_text(statement_, at, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT));
    else
      file_.check(sqlite3_bind_null(statement_, at));
  }
  file_.check(sqlite3_step(statement_));
  file_.check(sqlite3_reset(statement_));
}

}  // namespace ttc
