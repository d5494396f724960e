"""The last check before a program is returned: does it train the model as the submitter's code does?

    repeat       checks that all steps do the same: compares two traces, and Python's values before and after a step
    clocks       detects code that asks for the time
    reference    runs the same steps in torch: the submitter's code in float32, the traced graph in float64
    compare      compares loss, gradients and buffers of the exact step with those of both torch runs
    locate       finds the first operation where a difference begins
    following    trains whole steps in torch, for a comparison with the exact ones
    run          runs the preflight on a few batches, drawn as the program draws them

Each refusal is a `CaptureError`. A `result.Report` describes a step that passes.
"""
