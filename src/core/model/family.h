// The families of models a config.json may describe, each with the function that reads it.
//
// A reader sees a Draft whose `keys` is the language model's map, reads its own family's keys only, and fills
// every layer. import.cc holds the table from model_type to reader.
#pragma once

#include "import_draft.h"

namespace tessera::importing {

using Reader = Status (*)(Draft&);

Status read_qwen_dense(Draft& draft);      // qwen2, qwen3
Status read_qwen2_moe(Draft& draft);       // qwen2_moe
Status read_qwen3_moe(Draft& draft);       // qwen3_moe, qwen3_vl_moe
Status read_qwen3_next(Draft& draft);      // qwen3_next
Status read_qwen3_5(Draft& draft);         // qwen3_5 (dense)
Status read_qwen3_5_moe(Draft& draft);     // qwen3_5_moe
Status read_deepseek_v2(Draft& draft);     // deepseek_v2
Status read_deepseek_v3(Draft& draft);     // deepseek_v3, kimi_k2
Status read_deepseek_v32(Draft& draft);    // deepseek_v32
Status read_deepseek_v4(Draft& draft);     // deepseek_v4
Status read_glm_moe_dsa(Draft& draft);     // GLM-5
Status read_glm4_moe(Draft& draft);        // GLM-4.5 … 4.7
Status read_kimi_linear(Draft& draft);     // Kimi-Linear, Kimi-K3
Status read_mixtral(Draft& draft);         // mixtral
Status read_gpt_oss(Draft& draft);         // gpt_oss
Status read_mimo_v2(Draft& draft);         // mimo_v2_flash
Status read_step(Draft& draft);            // step3p5, step3p7
Status read_llama(Draft& draft);           // llama, mistral
Status read_llama4(Draft& draft);          // llama4
Status read_minimax_linear(Draft& draft);  // MiniMax-Text-01, M1
Status read_minimax_m2(Draft& draft);      // M2, M2.5, M2.7
Status read_minimax_m3(Draft& draft);      // M3
Status read_nemotron_h(Draft& draft);      // Nemotron-H, Nemotron-3
Status read_nemotron_nas(Draft& draft);    // Llama-Nemotron (DeciLM)
Status read_granite_hybrid(Draft& draft);  // Granite-4.0-H
Status read_bamba(Draft& draft);           // Bamba
Status read_jamba(Draft& draft);           // Jamba
Status read_bailing_linear(Draft& draft);  // Ring-linear, Ling-linear
Status read_lfm2_moe(Draft& draft);        // LFM2
Status read_gemma3(Draft& draft);          // Gemma 3
Status read_gemma4(Draft& draft);          // Gemma 4

}  // namespace tessera::importing
