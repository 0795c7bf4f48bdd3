"""compile: kernels are fused by torch.compile

causes: unfused-elementwise, fusion, launch-bound, host-compute, kernel-gap, short-kernels, gpu-bound, gil
group: compile
tolerance: 0.02
warmup: 10
limit: 600
asks: yes
write: model.compile() after the model is made

The first module with parameters that the program calls is compiled; functions outside of modules are not.
"""


def apply(trial):
    trial.compile_model("compile", "model.compile()")
