"""compile-dynamic: kernels are compiled once for all shapes

causes: recompile
group: compile
tolerance: 0.02
warmup: 10
limit: 600
asks: yes
write: model.compile(dynamic=True) after the model is made

The first module with parameters that the program calls is compiled; functions outside of modules are not.
"""


def apply(trial):
    trial.compile_model("compile-dynamic", "model.compile(dynamic=True)", dynamic=True)
