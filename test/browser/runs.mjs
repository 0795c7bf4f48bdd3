/** Recordings of test/corpus/data: training, decoding, servers and CUDA C++; one and several processes, streams and launching threads. */
export const RUNS = ["gpt_char_train", "train_scans_loader", "leaf_resnet", "dqn_replay", "chat_greedy", "translate_beam", "batching_server",
  "mask_server", "remote_features", "frame_gain", "star_cluster", "implicit_diffusion"];
