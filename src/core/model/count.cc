#include "tessera/core/model/count.h"

#include "parameter_formulas.h"

namespace tessera {

namespace {

using Size = formulas::Size<std::int64_t>;

int sublayers(const Layer& layer) {
  return (std::holds_alternative<std::monostate>(layer.mixer) ? 0 : 1) + (layer.dense || layer.moe ? 1 : 0);
}

// Adds a size to one field, and its vectors to the field that only says how many of them there are.
void add(std::int64_t& field, ParameterCount& count, const Size& size) {
  field += size.total();
  count.vectors += size.vectors;
}

void add_norms(ParameterCount& count, std::int64_t& field, std::int64_t norms, const ModelSpec& model) {
  add(field, count, Size{0, norms * model.norm_parameters_per_hidden * model.hidden});
}

}  // namespace

std::int64_t ParameterCount::total() const noexcept {
  return embedding + head + mixer + dense + shared + router + latent + routed + norms + projection;
}
std::int64_t ParameterCount::matrices() const noexcept {
  return total() - vectors;
}
std::int64_t ParameterCount::active() const noexcept {
  return total() - routed + routed_active;
}

ParameterCount& ParameterCount::operator+=(const ParameterCount& other) noexcept {
  embedding += other.embedding;
  head += other.head;
  mixer += other.mixer;
  dense += other.dense;
  shared += other.shared;
  router += other.router;
  latent += other.latent;
  routed += other.routed;
  routed_active += other.routed_active;
  norms += other.norms;
  projection += other.projection;
  vectors += other.vectors;
  return *this;
}

ParameterCount count_parameters(const ModelSpec& model, const Layer& layer) {
  const std::int64_t h = model.hidden;
  ParameterCount out;
  add(out.mixer, out, formulas::mixer<std::int64_t>(layer.mixer, h));
  if (layer.dense) add(out.dense, out, formulas::dense<std::int64_t>(*layer.dense, h));
  if (layer.moe) {
    const auto moe = formulas::moe<std::int64_t>(*layer.moe, h);
    add(out.shared, out, moe.shared);
    add(out.router, out, moe.router);
    add(out.latent, out, moe.latent);
    out.routed = layer.moe->experts * moe.one_expert.total();
    out.vectors += layer.moe->experts * moe.one_expert.vectors;
    out.routed_active = layer.moe->top_k * moe.one_expert.total();
  }
  add_norms(out, out.norms, sublayers(layer) * model.norms_per_sublayer, model);
  if (model.residual_streams > 1) {
    for (int i = 0; i < sublayers(layer); ++i)
      add(out.norms, out, formulas::hyper_connection<std::int64_t>(model.residual_streams, h));
  }
  return out;
}

ParameterCount count_parameters(const ModelSpec& model, const Block& block) {
  const std::int64_t h = model.hidden;
  ParameterCount out;
  switch (block.kind) {
    case BlockKind::embedding:
      out.embedding = model.vocabulary * h;
      break;
    case BlockKind::head:
      out.head = model.tied_embeddings ? 0 : model.vocabulary * h;
      add_norms(out, out.norms, 1, model);
      // One mixing vector per stream brings them together before the head, with a base and a scale.
      if (const auto streams = model.residual_streams; streams > 1)
        add(out.norms, out, Size{streams * streams * h, streams + 1});
      break;
    case BlockKind::layer:
      out = count_parameters(model, model.layer_of(block));
      break;
    case BlockKind::mtp:
      out = count_parameters(model, model.layer_of(block));
      add(out.projection, out, Size{2 * h * h, 0});
      add_norms(out, out.projection, 3,
                model);  // of the hidden state, of the next embedding, before the head
      break;
  }
  return out;
}

ModelParameters count_parameters(const ModelSpec& model) {
  ModelParameters out;
  for (const Block& block : model.blocks)
    (block.kind == BlockKind::mtp ? out.mtp : out.model) += count_parameters(model, block);
  return out;
}

}  // namespace tessera
