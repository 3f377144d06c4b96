#include <chrono>
#include "partition/instance.h"
#include "report.h"
using namespace tessera; using namespace tessera::bench; using namespace tessera::train;
int main(int argc, char** argv){
  auto specs = paper_specs();
  for (auto& s : model_specs()) specs.push_back(s);
  for (auto& s: specs){
    if (argc>1 && s.name != argv[1]) continue;
    auto t=std::chrono::steady_clock::now();
    auto i = Instance::open(s);
    if(!i){fmt::print("{} {}\n",s.name,i.error().text());continue;}
    auto& in=**i;
    fmt::print("{} open {:.3f} vars {} window {} ",s.name,seconds_since(t),count_variables(in.problem),in.window);
    fflush(stdout);
    for(int k=0;k<(argc>2?atoi(argv[2]):3);++k){ t=std::chrono::steady_clock::now(); auto r=in.sweep(50);
      fmt::print("| {:.4f} s moves {} timed {} sig {} work {} best {} {} ",seconds_since(t),r.moves,r.pairs_timed,in.costs->signatures(),r.result.work,r.result.best.size(),train::name(r.result.reason));
      fflush(stdout);}
    fmt::print("\n");
  }
}
