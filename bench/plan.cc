// BENCH=plan: wall time of the whole `tessera plan` process on eight models, plan file and trace written.
//
// Before a time counts, the answer is held to account: the process must succeed, its plan file must pass
// `tessera check`, and no iteration may be shorter than its lower bound. An item's time is the median of five
// runs.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "report.h"
#include "tessera/core/base/document.h"
#include "tessera/core/base/text.h"
#include "tessera/train/execution_plan/plan_file.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;

constexpr int kRuns = 5;
constexpr std::array<const char*, 8> kModels{"qwen3-next-80b",   "qwen3-235b", "deepseek-v3",
                                             "nemotron-3-super", "glm-4.5",    "kimi-linear",
                                             "gpt-oss-120b",     "minimax-m2"};

// Runs a program with its output in `log`; −1 when it cannot be started.
int run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Item {
  std::vector<double> seconds;
  tessera::train::Prediction predicted;
};

}  // namespace

int main() {
  const fs::path folder = fs::temp_directory_path() / fmt::format("tessera-bench-plan-{}", getpid());
  fs::create_directories(folder);
  const fs::path plan = folder / "plan.yaml";
  const fs::path log = folder / "log";
  tessera::bench::Table table(
      {"model", "s (median of 5)", "s (worst)", "iteration s", "bound s", "tokens/s/GPU", "peak GiB"});
  double slowest = 0;
  bool sound = true;
  for (const char* model : kModels) {
    const std::string job = fmt::format("{}/bench/plan/{}.yaml", TESSERA_SOURCE, model);
    const std::vector<std::string> command{
        TESSERA_PROGRAM, "plan", job, "-o", plan.string(), "--trace", (folder / "trace.json").string()};
    Item item;
    for (int i = 0; i < kRuns; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const int code = run(command, log);
      item.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      if (code != 0) {
        fmt::print("{}: tessera plan exited with {}\n{}", model, code,
                   tessera::read_file(log.string()).value_or(""));
        sound = false;
        break;
      }
    }
    if (!sound) break;
    const auto read = tessera::train::read_plan_file(plan.string());
    if (!read || run({TESSERA_PROGRAM, "check", plan.string()}, log) != 0 ||
        read->predicted.iteration < read->predicted.lower_bound) {
      fmt::print("{}: the plan does not hold: {}\n", model, read ? "check failed" : read.error().text());
      sound = false;
      break;
    }
    std::ranges::sort(item.seconds);
    const double median = item.seconds[kRuns / 2];
    slowest = std::max(slowest, median);
    const auto& p = read->predicted;
    table.add({model, fmt::format("{:.3f}", median), fmt::format("{:.3f}", item.seconds.back()),
               fmt::format("{:.3f}", p.iteration.value()), fmt::format("{:.3f}", p.lower_bound.value()),
               fmt::format("{:.0f}", p.tokens_per_second_per_gpu),
               fmt::format("{:.1f}", tessera::gibibytes(p.peak_memory))});
  }
  fs::remove_all(folder);
  table.print();
  if (!sound) return 1;
  tessera::bench::Json().add("max_seconds", slowest).print();
  return 0;
}
