<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>Breakpoints</name>
    <message>
        <source>token %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a needle begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a question begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>an answer begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the text “%1”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partition %1 is chosen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>less than %1 % is left of the needle</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Commands</name>
    <message>
        <source>Routing and state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Teaching</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Collapse</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Head gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delta rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type and spacing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Theme</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Arrangement</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open checkpoint…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open prompt…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write a prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export this view…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preferences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1×</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1.25×</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1.5×</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>2×</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>3×</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Larger type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Smaller type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>My own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep this as my own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wider view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Narrower view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add a view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close this view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Make this view the large one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next view in this place</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with this token, or with none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zoom in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zoom out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zoom to fit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Inspector</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presenter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find anything…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ten tokens back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next needle, question, answer or breakpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous needle, question, answer or breakpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer and head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer above</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shared partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cell</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cell above</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cell below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cell to the left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cell to the right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Play or pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Slower</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoint at this token (presenting: blank the screen)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoints…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loop from this token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loop up to this token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Generate 32 more tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About Statescope</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>View</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop comparing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compared models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare A with the next model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is different</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enlarged drawing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look further left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look further right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look further up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look further down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lessons</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open lesson…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the lesson’s picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Predict</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave the lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Learn</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Intervene</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open session…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save session</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save session as…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Range of the colours, with a histogram</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the marked cell (Enter in its view)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interventions…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo the intervention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Redo the intervention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zero this row from here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zero this head from here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zero this partition from here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Freeze this layer&apos;s decay from here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel opening, reading, generating or an intervention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The cell’s whole row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The partition’s whole state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About this model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Watch a training…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Follow the desktop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Taller view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shorter view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to the next view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to the previous view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next way to look at it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the previous place</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forward again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next step of the lesson, or next token without a lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous step of the lesson, or previous token without a lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ten tokens forward</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the previous branch beside this one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start page</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Menu of this place</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find in the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the words mean</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Session in one file, to share…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the command that opens this</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The teacher’s window: notes, what comes next, the time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This view in a window of its own, or back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Option</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Begin presenting, as a remote does</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Faster (presenting: blank the screen)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>exact</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recomputed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>approximate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>exact: kept from the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recomputed from the keyframe before it, float32</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recomputed in double precision</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>within 1e-05</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>within 0.0001 of the value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decayed outer product</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gated delta rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>selective scan</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>WKV</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>log-linear attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>state space</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>softmax attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>short convolution</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>key row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>value column</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>coefficient</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>words</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>slot</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>signed numbers have diverging colours: printed in grey, a negative number looks like the positive one of its size</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Interventions</name>
    <message>
        <source>Zero this row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zero this head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zero this partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scale this partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Times</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Freeze the decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scale the decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>log α times</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Route everything to a partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sharpen or flatten the head gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Replace this token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>branch %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scale this row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scale this head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import the state of another run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>λ (1: as is)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the number of partitions (top-k)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the number of writers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the number of readers</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TypedNumber</name>
    <message>
        <source>Type a number, such as 0.25 or -2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” may be %2 or %3: type one of them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” is not a number. Type one such as 0.25 or -2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” is not a whole number.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” is not between %2 and %3.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Views</name>
    <message>
        <source>Tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many tokens are shown, the cursor&apos;s among them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where in the text are we?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The tokens as the model reads them. Marks: N needle (gold, solid line), Q question (dashed), A answer (double), G generated by the model (dotted). The numbers beneath are the partitions the token was routed to in this layer: T_t, the indices of the W largest of e_t = softmax(x_t W_e); SSE eq. 9.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partition routing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which partition does each token write to?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What does the memory hold?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How fast does the memory forget?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delta rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What does the token correct?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Head-gate contest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Similarity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Spectrum and rank</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many directions does the memory use?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Implicit attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What does each token read from which token?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What became of the needle?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Predictions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What does the model say next?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is the model made of?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cumulative</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Half-life</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Receptive field</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Overview</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prediction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Angle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Erase and write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Over time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Flow</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sharpness</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Multiplies the logits of both gates (SLA Thm 4.2, 4.3): a probe, which changes nothing in the run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Heads of the layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Probabilities</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Logits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rows, clustered</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Singular values</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Singular values, heads by rank</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rank of partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rank along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Entropy along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Norm along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Erase</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Difference</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many tokens are shown at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Difference along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Routing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Heads, other model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rows, other model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KL divergence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Writes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which rows are written, and how long ago?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle grid</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branch difference</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What did the intervention change?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many needles a text holds; one of them is asked for.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many tokens the map shows, around the cursor&apos;s and the one it is compared with.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Age of the rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Half gone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rows a token writes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All together</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shares |A|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>weight</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing has been read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} reads nothing here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} reads most from {}: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} reads most from {}: {}; from the needle {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pale bar: Σ|A| = {0} of the {1} tokens before {1}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>row t reads column s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} parts worked out, the rest hatched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>up to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>before {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not worked out yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}, head {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What tokens read in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no other model to compare with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with… in the File menu opens one beside this one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} is on its way to this token.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} has no layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has {} of them, {} has {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the model&apos;s own run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>branch {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The most probable next token stays the same everywhere; KL up to {} nat, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>largest change of a logit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a checkpoint and a prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the model&apos;s own run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the branch predicts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, against {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>row {} of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>row {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean cos, same number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos|, all pairs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>largest |cos|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no cosine, hatched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no matrix state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} rows of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The states of {} and {} have different shapes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A head of {} has {}, one of {} {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Both heads together have {} rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}, {} of {} and {} of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} is {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>by {}, fastest first; {} is number {} of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, mean over channels</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The memory of layer {} ({}) never forgets by decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its α is 1 at every token: everything that was written stays, and adds up.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No token from {} to {} came to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where no token comes nothing decays: what is there stays as it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>over {} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} to {} tokens, median {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half is gone after {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a write is felt for {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a write is felt for {}; {} of {} reach the run&apos;s beginning</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no token has come here yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} keeps α = {} of itself at {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>colour: what is left of each token&apos;s write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>colour: α, the part that each token keeps</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>colour: 1 − α, the part that each token takes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens until half is gone; hollow: never; dashes: length of the run, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens until a thousandth is left; hollow: at least; dashes: length of the run, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reach the run&apos;s beginning</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>column {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The decay of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>predicted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>wanted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>erased</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>written</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>net change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>strength</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cosine of prediction and value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>⟨π, v⟩ / (‖π‖ ‖v‖)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} erases before it writes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} erase before they write.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>last visited by {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>negative: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>predicted π</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>wanted v</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>error v − π</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1. erased</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>2. written</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Erase, then write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last visit: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The delta rule of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No token came to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where no token comes nothing is predicted, erased or written.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>key rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>value columns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The routing of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} is 0 wherever both have one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} is {:+.3g} at most: {}, token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no token has been read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head {} wins the write, head {} the read; C(t,t) = {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>λ = {:.3g}, a probe that changes nothing in the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.3f} wins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reads, G^Q ({} of {} heads)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reads, G^Q</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>writes, G^K</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>margin {:.2f}, entropy {:.2f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Outlined: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy Q</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>λ: a probe, the run stays as it is</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>write gate G^K, winner beneath</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read gate G^Q, winner beneath</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>row t reads from column s: C(t,s)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C(t,s) at {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy of G^K</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy of G^Q</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The contest of the heads of layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The heads of layer {} ({}) do not compete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every head writes and reads every token in full. SLA models have gates over their heads.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What passes between the tokens of layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who wrote {}: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} = {}, written by {} tokens that add up to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖row {}‖</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the run is being read again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>memory tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>c ⟨v, Z⟩ / ‖Z‖ with the token&apos;s value vector v and the row Z</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>c v[column] with the token&apos;s value vector v</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} × {0} cells in one, the strongest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>keys and values of every token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} head of {} × {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} heads of {} × {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, shared and {} partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, {} partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>state {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} a token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} shown, bottom to top</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tensors of layer {}, as stored</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>part</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shape</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The size of each layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>embedding</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token to vector</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, head {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>erasure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>overwriting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>misrouting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Over</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Miss</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} took {:.2f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.2f} clear; {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the {} places of {} that it wrote most to</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean of the layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read {:.2f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} in {}, most at {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} at {} {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>most at token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>and {} more that it wrote less to</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No token has been read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This prompt has no needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt has to go on after it, with the question.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What became of the needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The needle wrote to no matrix memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Softmax attention keeps keys and values of tokens instead: there is no state in which they could fade or be written over.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} {}, {} % deep</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} prompts with {} needle are answered right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} prompts with {} needles are answered right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fewest with {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.0f} % read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prompt {}: answer token {} is wrong</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} (trained on)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a cell to open a prompt that failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No prompt has failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>and {} more failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no failed prompt to open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>choose it to open a prompt that failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read apart from the run; the same: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No checkpoint is open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How often needles are found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layers {} and {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partition {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>question</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} cannot be shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} is being worked out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.0f} % done.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} has not been worked out yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It appears as soon as the run has been read again for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token {} “{}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>before the first token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>after token {} “{}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) keeps no matrix state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No layer of this model does.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} keeps one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} keep one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>right, follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all other tokens together {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the token that follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>squares: the right answer where it is due</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, in a window of the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>logits of the right answer&apos;s tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>logits of what is most probable at the cursor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>probability</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rank of the token that follows, 1 is first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy, nat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is predicted along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>probability of the token that follows, in a window of the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>probability of the token that follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Curves stand side by side where both have read the same.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} “{}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} “{}” {}; {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The routing of layer {} has not been computed yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It appears with the first token that is read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) does not route its tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every token goes to the same memory. In this model, {} chooses among partitions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every token goes to the same memory. In this model, {} choose among partitions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>written now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>alarm</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>yes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} and {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: no token has been routed yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: token {} is written to {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>dead</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>overloaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) keeps one memory a head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no partitions to compare. SSE and MoM models have some.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) has one head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no heads to compare.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>least cos</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>zero, hatched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>… in a partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>… between them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>zero rows, hatched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A head of {} has {} rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 of every {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>worked out, rest hatched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} tiles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos| of two partitions is {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos| of two heads is {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos| of two states is {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |cos| of two rows is {} {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cosine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>after different tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} uses {:.1f} of {} directions, {} only {:.1f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head {} uses {:.1f} of {} directions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, head {} only {:.1f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rank</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>singular value entropy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of head {} is {} after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; {} of {} tokens, evenly</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>σ_i, singular values; {} nearly 0 at the foot</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>σ_i, singular values</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>i, largest first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rank, of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rank of each partition&apos;s state alone, of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of each head, numbered at the right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rank of σ²</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The rank of layer {} along the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The spectrum of layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The state of layer {} has not been computed yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It appears as soon as the run has been replayed to this token.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A gated short convolution keeps its last few gated inputs instead; what lies further back is forgotten.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It works on each token by itself, and keeps nothing from one to the next.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its memory is: {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} memories</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, {} head of {} × {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, {} heads of {} × {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} keeps no matrix state in layer {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no token to compare with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The state after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The memory of layer {} erases nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the token did to the memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>erase</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>difference</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State of {} after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State of {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}: {} rows, {} columns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; most of it: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>change {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token {}  {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing has happened yet at {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>after {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>changed by {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>taken by decay at {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>erased by {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>written by {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>norm</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>norm {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all 0</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>unchanged</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>size of the state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>change by the token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>routing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy of the routing: 0 decided, 1 undecided</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>entropy of the head gates: 0 one head wins, 1 all alike</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read G^Q</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>write G^K</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>winner</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head that wins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>size of what enters the block</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loss</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>surprise at the token, nat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−ln p of the token, as predicted by those before it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>training length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}, tokens {} to {} of {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}&apos;s lanes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The loss</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; {} more lanes where there is more room</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>generated</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No tokens have been read yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token {} of {}: {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not written yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>more than half of everything is still there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} ago</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no row has been written yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no row has lost half of anything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no token writes here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a token writes to {:.1f} of {} rows on average</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rows that a token writes to</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective, (Σ|ω|)² / Σω²</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>counted, |ω| ≥ 0.001 Σ|ω|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was written in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the two have not read the same text, so no token of one stands for a token of the other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each cell: how many questions for a needle are answered right in every token, by the length of the text and by how deep in it the needle stands. 20 generated texts (those of statescope eval --task niah) in each of 5 × 5 cells; quick: 5 in each of 3 × 3; thorough: 100 in each of 5 × 5. Whatever lies between needle and question has to leave it in the state S_t (GLA eq. 3, SSE eq. 9, Gated DeltaNet eq. 10). A cell with failures opens one of those very prompts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Usual</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quick</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thorough</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no room for {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} = {}, written by one token: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>⟨c v, S⟩ / ‖S‖ with the token&apos;s value vector v and a coefficient c for each row of the state S; below: √Σc²</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Values</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose it: who wrote the whole row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose it: who wrote the whole state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Point at a cell to read its value and who wrote it. W: its row, Shift+W: all rows.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖change‖ {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; from token {} on they read different texts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}: half of a write is gone after {}, 99.9 % after {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compared with token {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>compared with (D)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all others {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rank, 1 is first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It appears as soon as a model has read its first tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt has not been read to its end yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What became of the needle shows when it has.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first prompt with {} needle is being read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first prompt with {} needles is being read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first prompt is being read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of {} answered right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prompt {}: the reply does not contain the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} {} the model predicts nothing: its numbers are not finite (NaN or infinity)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No prediction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the model computes after this token is not a finite number.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>part of “{}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mark one in the prompt (Ctrl+T): select its words, then Needle; a model without a tokenizer has no words to select. In a prompt file &quot;spans&quot; name it by its bytes, or in token ids by its tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} {} the model expects {}, {}, which is right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} {} the model expects {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} expects “{}”, {}, which is right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} expects “{}”, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} {} “{}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>e_t = softmax(x_t W_e); the W largest are written (SSE eq. 9)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>G_t = softmax_h(λ · logits) (SLA eq. 4, Thm 4.2)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ G log G / log H</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ G log G / log H (SLA Thm 4.2)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>curve</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half-life</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ln 2 / mean(−log α)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>receptive field</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>how far back Δ stays above 0.001 (SSE Def. 4)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Δ</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Δ of its write is left after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the value that is put in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what the token corrects</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is taken away</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is put in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>both together</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the strength of the correction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>G^Q at λ</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>G^K at λ</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>λ = {:.3g}: a probe that changes nothing in the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>argmax of G over the heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head that wins the read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head that wins the write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Σ_h G^Q_t G^K_t (SLA Thm 4.3)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C(t,s) = Σ_h G^Q_t G^K_s (SLA Thm 4.3)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing, it comes later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>o_t = Σ_s A_{t,s} v_s (SSE Def. 3)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>strongest of {} tokens that are read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token that is read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a token cannot read what comes after it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of the token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read by {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the strongest is {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>before token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KL(p ‖ p′)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Σ p ln(p / p′) of the next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>max |z′ − z|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of the logits of the next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the same on both branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖S′‖, here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decayed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>overwritten</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>misrouted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>parts of what the needle wrote, at the question; they add up to 1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>share of what the question reads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the largest of all heads (SSE Def. 3)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>which reads it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>took</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>part of all that the needle wrote</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fall at token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fall</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of the mean of the layers, from the token before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>depth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>answered right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>right in every token ÷ asked, as statescope eval --task niah</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>asked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prompts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prompts of each cell</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>failed prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>opens it where the reply begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>opens it at the first wrong token of its answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>part, from the embedding up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>elements of the tensors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tensor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stored as</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>extents</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) (SSE Def. 1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ p log p / log n, p = σ² / Σσ² (SSE footnote 8)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token that wrote</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>part of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is left of what it was written with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>written with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the rest was lost to later decay and erasure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}, head {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖row of S_t − S_{t−1}‖</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖row‖</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖what is shown‖</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Frobenius norm</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>time to half</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>time since the last write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rows written</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rows with |ω_r| ≥ 0.001 Σ|ω|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>does not come here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>|cosine|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none yet, or none: one of the two is zero</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none: one of the two is zero</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>key row of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>singular value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>singular values of each head&apos;s state, its partitions stacked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>exp(−Σ p log p), p = σ² / Σσ²</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p = softmax(z), z = W RMSNorm(x_t)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>as the tokenizer says</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>routed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>routed {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>load</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens that were routed here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>e now, written or not</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>e_t = softmax(x_t W_e) of the token that is shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no, nor decayed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prediction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p of the next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p of the token that follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rank of the token that follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 + how many are more probable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ p log p</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>z of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>due after token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p of the right answer&apos;s token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p of the token that follows, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖S_t‖_F</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>along the key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>along k, negative</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>old state along k</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>along k</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what the old state is multiplied with along k</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 of every {0} rows, a column is the strongest of {0} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is known about {} here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No prediction has changed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First changed prediction {}; KL up to {} nat, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first changed prediction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KL(parent ‖ here) of the next token, nat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change something in it (Run, Interventions) to compare what follows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What changes along the run?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which head writes, and which one reads?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which parts of the memory hold the same thing?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At which depth and length is a needle lost?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where do two models differ?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One model&apos;s numbers less the other&apos;s, token by token: e_t = softmax(x_t W_e) of the routing (SSE eq. 9), α of the decay (GLA eq. 3), G^K and G^Q of the head gates (SLA eq. 4). Blue: the other has more, orange: this one has. Hatched: one or both have no number there. States and predictions are compared in their own views, as “Other model”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The similarity of {} and {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Single rows are compared up to {} of them. Heads can still be compared.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its α is 1 at every token: what was written is lost only by being erased (see the delta rule).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}: Δ, what is left of each token&apos;s write; dashes: 0.001</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.0f} % of the error corrected: predicted {}, wanted {}, cosine {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of the error corrected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>corrected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; the old state along the key is reversed at {} of {} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The routing of {} and {} cannot be compared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The decay of {} and {} cannot be compared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The write gates of {} and {} cannot be compared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The read gates of {} and {} cannot be compared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The write gates of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The read gates of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read gates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} and {} read different tokens here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are compared token by token where both have read the same.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Outlines appear when the gates at λ have been worked out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If G^Q were 1, the layer&apos;s output would change by {} % of itself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; chosen: layer {}, {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle &quot;{}&quot;, tokens {} to {}, asked after token {}. {}; the needle is up to {:.2f} of what is read from one memory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At the question {:.2f} of what the needle wrote is still clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At the question {:.2f} of what the needle wrote is still clear: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is asked after the needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; the needle is up to {:.2f} of what is read from one memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is left of it, ‖C‖ ÷ ‖C written‖, after each token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what took it, as a part of all that it wrote; and the token that took most</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>down: depth of the needle; across: length of the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>down: depth; across: length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open one to see how often it finds a needle.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; right would be {}, {}, rank {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}; probability of the whole right answer: {:.4g}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the part of the error that is corrected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read_gate_effective = {}: relative change of the layer&apos;s output if G^Q were 1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C tends to 1, because one head wins both (SLA eq. 9)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C tends to 0, because two heads win (SLA eq. 9)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>one or both have none here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖S‖, of the parent branch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token of the other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>head of the other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partition of the other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} of the other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>smaller than any that is known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Single rows are compared up to {} of them. Partitions and heads can still be compared.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The similarity in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is nothing to subtract.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}: {}. {}: {}. Numbers are subtracted only where both have a place.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Press D at another token: its state is then subtracted from the one at the cursor.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, minus that after token {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖S_t‖_F over all heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖S_t − S_{t−1}‖_F over all heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ e log e / log N, e of SSE eq. 9</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>−Σ G log G / log H (SLA eq. 4)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>argmax of G over the heads (SLA eq. 4)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖x_t‖, norm of the residual stream</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half of the written rows were written in the last {}; not written yet: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rows lose half within {} (median); not yet: {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One lane for each number that changes from token to token, all under one cursor. Lanes over tokens: ‖S_t‖ and ‖S_t − S_{t−1}‖ of every slot; entropy of the routing, −Σ e log e / log N with e of SSE eq. 9; entropy and winner of the head gates G^Q, G^K (SLA eq. 4); ‖x_t‖ as it enters the layer; −ln p of each token.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For each row of the state: when it was last written, and how much of that has faded since. ω_r, the coefficient with which a token&apos;s value comes to row r: k_r (GLA eq. 3), in SSE&apos;s sparse partitions e k_r (SSE eq. 9), of the delta rule β k_r (Gated DeltaNet eq. 10). A row counts as written where |ω_r| ≥ 0.001 Σ|ω|. Half gone: how far back one has to go for decay to have left half of what stood there. Hatched: never. Effective rows: (Σ|ω|)² / Σω², all of them for equal weights, 1 for a single row.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How much decay leaves of what each earlier token wrote. Δ_{t,s} = α_{s+1} · … · α_t is what is left after token t of what token s wrote; S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3; SSE eq. 9: only partitions that are written decay). Half-life: ln 2 / mean(−log α). Receptive field: how far back Δ stays above 0.001, mean over the last 128 tokens (SSE Def. 4, fig. 9). What a delta rule erases is not in it. Of a selective scan log α of a state is the mean of Δ A over its channels (Mamba eq. 4).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The heads compete: a gate says how much each of them writes, another how much it reads. G^Q_t = softmax_h(Q_t W_GQ) scales what each head reads, G^K_t = softmax_h(K_t W_GK) what it writes (SLA eq. 4). Entropy: 1 where all heads are alike, 0 where one has everything. C(t,s) = Σ_h G^Q_t G^K_s: what may pass from token s to token t (SLA Thm 4.3). λ multiplies the logits (Thm 4.2): the sharper, the more the winner takes all (SLA eq. 8, 9).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rows that look alike hold the same thing, and so waste room. cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) of key rows of the state, of all partitions of a head (SSE Def. 1; the rows are those that SSE eq. 9 writes), of whole partitions, of heads, and of one state after different tokens. Blue is opposite, white unrelated, orange alike; hatched: one of the two is zero. Clustered: average linkage of 1 − |cos|, so that like rows are neighbours.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A state that uses few directions can hold few different things. Singular values σ of each head&apos;s state, its partitions stacked (the state of SSE eq. 9). Effective rank: exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli). Entropy: −Σ p log p / log n with p = σ² / Σσ² (SSE footnote 8): 0 is one direction, 1 all of them alike.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is left of the needle after each token, and at the question what took the rest. S = C + all else, C what is left of what the needle&apos;s tokens wrote; curves: ‖C‖ after each token. Parts of 1 at the question: taken by decay (GLA eq. 3, SSE eq. 9), erased by the delta rule (Gated DeltaNet eq. 10), lying under later writes along the needle&apos;s keys (in S4 along what is left of it), lying where the question does not read, and clear. Layers count the same, heads by ‖C‖². Read: the needle&apos;s share of what the question reads, the largest of all heads. A description, not a diagnosis: over 2,800 answers of small models right and wrong ones hardly differ in what is clear (AUC 0.59) or in what is read (0.59).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The tokens that the model expects next, the most probable first. p = softmax(z), z = W RMSNorm(x_t) the logits after the cursor&apos;s token (x_t as the last block leaves it; SSE eq. 9 and all other memories speak through it). Beside: the probability of the token that follows and of the right answer&apos;s tokens, the rank of what follows, and the entropy −Σ p log p.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How far the predictions and the states of this branch have moved from those of its parent. After each token: KL(p ‖ p′) = Σ p ln(p / p′) of the next token, p on the parent branch and p′ here, and max |z′ − z| of the logits. Below: ‖S′ − S‖_F / ‖S‖_F of every layer&apos;s state S_t (GLA eq. 3, SSE eq. 9) after the cursor&apos;s token.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half-life, tokens; dashes: all {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens until 0.001 is left; dashes: all {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>squares: right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remembered input</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What does the state still say of the past input?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Of one channel of S4 with HiPPO&apos;s matrix (S4 eq. 2), whose N states X_n are coefficients of Legendre polynomials: û = Σ_n X_n √(2n+1) P_n(2 e^{−s} − 1) at s = (t − s&apos; + ½) Δ for the input of token s&apos;, beside that input. The longer ago, the coarser: N polynomials share what is weighed with e^{−s}. The channel is the chosen column of the state.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) keeps no coefficients of its input</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S4 with HiPPO&apos;s matrix does: its states are coefficients of Legendre polynomials.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}, channel {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is remembered in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>over the last {} nothing came in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>over the last {} what is remembered is off by {:.2f} of the input&apos;s size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>input of the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what came in, u</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is remembered, û</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>input</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>u, what comes into the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remembered input</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>û = Σ_n X_n √(2n+1) P_n(2 e^{−s} − 1) (S4 eq. 2)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One cell for each number that the memory holds; a token adds the product of its key and its value. S_t, K key rows by V value columns, of one slot and head. S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA, SSE eq. 9 to 12, with the gate e as a factor of k); S_t = α_t (S_{t−1} − β_t k_tᵀ (k_t S_{t−1})) + β_t k_tᵀ v_t (gated delta rule); S_t = exp(Δ_t A) ⊙ S_{t−1} + B_tᵀ (Δ_t x_t), N states by the channels (selective scan, Mamba eq. 2, 4). Blue is negative, orange positive. The small pictures of partitions have one range of colours, and so has a slot of models beside each other. The column beside the rows: norm of S_t − S_{t−1} along each row.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Colours span the same numbers as in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>colours as in {} · {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The layers from the embedding up. A grid: one matrix S a head, S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3) or by the delta rule (Gated DeltaNet eq. 10); small squares: partitions that tokens are routed to (SSE eq. 9); lines: the keys and values of every token, softmax attention. States are float32, whatever the weights are. Program: what the chosen layer computes of a token x, operation after operation, in its paper&apos;s terms.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) does not write by the delta rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What layer {} computes of a token x</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tensors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Program</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No layer of this model has partitions. SSE and MoM models do.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>operation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>computes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which tokens does each token choose to look at?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Some softmax layers do not read all earlier tokens but choose. A column is a token; bright: the blocks, or tokens, that it chose. MoBA (eq. 5, 6): the blocks with the largest q_t · mean(k), and its own. NSA (eq. 9 to 12): the blocks whose means get the largest weights p_t, beside the first one, its own and the one before. DeepSeek-V3.2 (eq. 1, 2): the tokens of the largest I_{t,s} = Σ_j w_{t,j} ReLU(q_{t,j} · k_s). What is not chosen is not read, whatever it says. How SSE chooses partitions is in the view Partition routing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Softmax layers that choose are those of MoBA, NSA and DeepSeek-V3.2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) attends to tokens without choosing them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} looks at {} of {} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} looks at {} of {} blocks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, the needle among them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, the needle not among them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>chosen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>and {} more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bright: looked at, down: tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bright: looked at, down: blocks by their first token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gold: needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} tokens in one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens {} to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is chosen in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer {}, all heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the largest q_t · mean(k) (MoBA eq. 5, 6)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>I_{t,s} = Σ_j w_{t,j} ReLU(q_{t,j} · k_s) (DeepSeek-V3.2 eq. 1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>p_t, weight of the block&apos;s mean (NSA eq. 9)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token to look at</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>block to look at</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>looked at</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>score</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not chosen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>looked at by the token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>score of it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Δ_{t,s} = α_{s+1} · … · α_t</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>π = k S̄, S̄ = α S</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Frobenius norms over all slots and heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>‖C_t‖ / ‖C‖, C_t what is left of what the needle&apos;s tokens wrote</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>float32: slots · H · K · V · 4</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>taken by decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>least n with Π α over the last n tokens ≤ 1/2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>since |ω_r| ≥ 0.001 Σ|ω|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>(Σ|ω|)² / Σω², ω the coefficients of v</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} to {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pale bar: Σ|A| = {} of the memory tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attention beside the memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, attention beside the memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A token is compared with what the memory already says, and only the difference is written. The key first reads what is there, π = k S̄ with S̄ = α S; the update takes β kᵀπ away and puts β kᵀv in, so that the key reads π + β ‖k‖² (v − π) afterwards (DeltaNet; Gated DeltaNet eq. 10). Along k the state is multiplied by α (1 − β ‖k‖²): negative where β ‖k‖² &gt; 1. RWKV-7 erases along another key than it writes with: κ̂ reads π of the state before its decay, and (κ̂⊙a)ᵀπ is taken away.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models with the delta rule, such as DeltaNet, Gated DeltaNet, KDA, Comba, RWKV-7, SSE-GDN, SLA-GDN and MoM, first take away what the key already reads.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{:.0f} % of what the erase key reads taken away: read {}, written {}, cosine {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of π taken away</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>taken away</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>step {} of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>π = κ̂ S of the state before its decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>how far the two are apart</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the part of π that is taken away</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the decay along κ̂</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the part of v that κ̂ reads afterwards</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what the old state is multiplied with along κ̂</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which experts does each token go to?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) has no experts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} has some.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In this model, {} have some.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>expert</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which experts tokens go to in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} experts, {} a token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>y = Σ_e w_e E_e(x) of the chosen experts (Shazeer et al. 2017, eq. 1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>chosen expert</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>share of the weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>w_e / Σ w</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokens so far that go to the expert</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>f_e / (k / E), f_e the fraction of the tokens so far (Switch Transformers eq. 5)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>share</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>w_e / Σ w over the chosen experts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No layer of this model has any. Mixture-of-experts hybrids do: Qwen3-Next, Qwen3.5 MoE, Kimi Linear, Granite 4.0-H, Nemotron 3, Jamba, LFM2-MoE.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>experts down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>experts down, {} × {} in one, the largest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A band leads from each token to the partitions that take it; its width is the gate. e_t = softmax(x_t W_e) over the N partitions; the W largest are decayed and written, the others stay as they are; the shared one is written by every token; SSE eq. 9, MoM likewise. Load: visits so far, divided by their mean over the partitions; 1 is fair.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A mixture-of-experts layer has E small networks, the experts, and a router that sends each token to k of them: y = Σ w_e E_e(x) over those k (Shazeer et al. 2017, eq. 1). The router&apos;s scores, by a softmax or a sigmoid (DeepSeek-V3 eq. 12 to 16), choose them and give the weights w. A column is a token; bright: an expert with a large share w_e / Σ w; blank: not chosen. Bars: the load over the tokens so far, f_e / (k / E) with f_e of Switch Transformers eq. 5; 1 is fair. Dead and overloaded ones are named after 32 E / k tokens. Experts keep nothing from one token to the next. A shared expert, to which all tokens go, is not shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: nothing has been read yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: {} goes to expert {} (of {})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: {} goes to experts {} and {} more (of {})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {}: {} goes to experts {} and {} (of {})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>unembedding</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{}, load {:.2f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>load {:.2f}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left, mean of the layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>visits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>visits · N / Σ visits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>last norm, to logits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} parameters of both ends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>blank: not chosen; bright: large w / Σ w</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After token {} {} the model expects {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model expects {}, {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Softmax attention keeps something of every token instead, such as its key and its value, and compares the query with those that it looks at.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What it holds only fades. The delta rule (DeltaNet, Gated DeltaNet, RWKV-7) takes away what a key reads before it writes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) reads no earlier tokens by weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shares of what is read in {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Softmax weights of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gated weights of three branches of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mean |A| over the channels of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Implicit attention of {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gated weight</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mean |A|</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A = softmax(q kᵀ / √d)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A = Σ_b g_b softmax(q k_bᵀ / √d) over the branches b: means of blocks, chosen blocks, window (NSA eq. 5)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>y^c_t = Σ_s A^c_{t,s} x^c_s of every channel c; the mean of |A^c| over them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How much of what a token reads was written by each token before it. A_{t,s} with o_t = Σ_s A_{t,s} v_s, exactly, before norm and gate: q_t decayed back to s, times k_s (SSE Def. 3; for the memories of SSE eq. 9, GLA eq. 3 and the delta rule, Gated DeltaNet eq. 10). Bars: what the cursor&apos;s token reads; gold: needle; the pale bar left of them: all earlier tokens. Map: row t reads column s, blue negative, orange positive. Softmax layers: their weights; NSA: those of its three branches, times their gates. Selective scans, whose channels each have an A of their own: the mean of |A|.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer {} ({}) has no softmax attention that could choose tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{} heads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The nearest layer that does is layer {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The memory of layer {} has no head {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has {}; the softmax attention beside it has {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has {}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The softmax attention of layer {} has no head {}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If G^Q were 1: output changes by {} %</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::BreakpointPage</name>
    <message>
        <source>A partition is chosen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Less of the needle is left than</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Percent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A needle begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Playing, and the keys to the next needle, stop where:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoints</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Space switches one on or off, Delete removes it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Kind of breakpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Playing loops over tokens %1 to %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A question begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An answer begins</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is wrong with it</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ChatTurns</name>
    <message>
        <source>Turns of the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who says this turn</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add a turn after this one (Alt+T)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove this turn (Delete in the list)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ErrorBar</name>
    <message>
        <source>Error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Error message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dismiss the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::FigurePage</name>
    <message>
        <source>89 mm, one column</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>183 mm, two columns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Width</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Height</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source> mm</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source> pt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Result</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wrote %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>NeurIPS, width of text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ICLR, width of text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Slide, 16:9</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>viridis</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cividis</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>grey</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>as it is</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>without red cones</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>without green cones</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>without blue cones</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>printed in grey</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The figure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File, .pdf, .svg, .png or .eps</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Typeface</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>DejaVu Sans, shipped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Colours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Title</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The view&apos;s name above the drawing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Colour bar</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the colours of a heatmap mean</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Marks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The cursor, needle spans, borders of partitions, the training length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sentences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the view writes about itself</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Numbers, .h5</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The numbers drawn, with axes, units and equation, beside the figure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Caption, .txt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A draft of the caption beside the figure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Figures (*.pdf *.svg *.png *.eps)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is nothing to write yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It does not say what it was made from: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Replace</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no folder %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing can be written into the folder %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preview</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How others see the colours; the file stays the same</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write the figure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, as it is now, on white</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 already exists.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 already exist.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Writing. The checksum of a large checkpoint takes a while…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>grey-safe</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::FindBar</name>
    <message>
        <source>Find in the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Places found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous place (Shift+Enter)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next place (Enter)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not in the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 places</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Header</name>
    <message>
        <source>%1 B parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 M parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 k parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the recording takes %1 of at most %2 of the device&apos;s memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the recording takes %1 of at most %2 of memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keyframe every %1 tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of at most %2 of the host&apos;s memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 in a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token ids, no text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 note</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 notes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Inspector</name>
    <message>
        <source>Layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Difference</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Predictions of the next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Values</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Values of the view in focus</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This layer keeps no matrix state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Values · %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Point at a cell, or choose one with Alt and the arrows, its row with W, all rows with Shift+W</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Norm of all rows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Norm of row %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Row %1, column %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 · partition %2, head %3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the chosen lines</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::InterventionPage</name>
    <message>
        <source>%1, right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, wrong</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>0  The model&apos;s own run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Intervention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One of:
%1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Apply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Redo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What to change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In every layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Return shows a branch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1
Parts at token %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changes layer %1 from token %2 on; what lies before it stays.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changes every layer from token %1 on; what lies before it stays.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1  Another prompt of %2 tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branch beside it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Under the same cursor, to compare with: states, predictions, answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Beside it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1
Only for its states</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The branch before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Four models are compared already. Close one of them first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read another prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompts (*.json *.jsonl *.txt);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read another prompt…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be written</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Then its states can be imported</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::KeyPage</name>
    <message>
        <source>Find a command or a key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gives the command this key instead of the ones it has</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The command stays in the menu and in the palette</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another key for “%1”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No command fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is the key of “%2”, which loses it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Press the new key in the field above.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gives the command the key it had at first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All default keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every command has its default key</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::LessonPage</name>
    <message>
        <source>%1 (%2 min)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lessons</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enter begins one. Your own: drop its file, a .md, on the window.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text of the step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the lesson’s picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look at: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This run does not show what the step says: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, the run’s answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run’s answer: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As you predicted. The run’s answer: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not what you predicted. The run’s answer: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Steps of the lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go on at step %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, your prediction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✓ done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>up to step %1 of %2</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::MainWindow</name>
    <message>
        <source>Recent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Blank screen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preferences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoints</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export this view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open checkpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checkpoints (*.h5);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompts (*.json *.txt)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Four models are compared already. Close one of them first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reads on %1; draws with OpenGL.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reads on %1; draws without OpenGL: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Begin</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lessons (*.md)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved, and kept up to date from now on: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interventions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Opens a prompt of the needle grid. Z leads back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a checkpoint first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a row of the state first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No intervention to undo; Z goes back to the place before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Something is being read: Esc ends it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undone: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Again: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open session</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save session</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sessions (*.scope)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the model&apos;s own run. Intervene first, or choose a branch.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Opened what the figure was made from.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compared with no token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compared with token %1: in State as Difference, in Similarity as Tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About this model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a chat: open the model that reads it first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Training</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder of a training&apos;s checkpoints</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 leaves the lesson</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No intervention to redo; Shift+Z goes forward again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This arrangement is kept as your own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a chat, and %2 has no chat template to read it with.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Drop it here to open it; with Shift, a model opens beside this one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Drop it here to read it as a prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>as asked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied the picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who wrote it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This cell</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its row</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The whole partition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoint at this token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with this token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Intervene</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Words used here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the words mean</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sessions (*.scope *.scope.zip)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the session first: Ctrl+S</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Session in one file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sessions in one file (*.scope.zip)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Writing %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Session, recording and checkpoint are in %1 (%2 MB)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Session and recording are in %1 (%2 MB); the checkpoint is too large for that</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpacking into %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Locate…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is %1?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is one screen alone: the class sees both windows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compared with token %1: State shows the difference. D at that token, or Esc, ends it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checkpoints, sessions, figures (*.h5 *.scope *.scope.zip *.pdf *.svg *.png);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No command line has this prompt in it: save the session, or open the prompt from a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what is marked in the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>interventions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It does not bring: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied the command that opens this</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a chat: an engine on another machine reads none in the window yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reads on the engine at %1; draws with OpenGL.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reads on the engine at %1; draws without OpenGL: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its path in the engine&apos;s folder:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The session lies in the engine&apos;s folder: it is to be copied from there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is open on an engine on another machine: --engine leads there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A prompt of the grid is made by the model&apos;s tokenizer, which is with the engine on another machine.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only a view of the stage can have a window of its own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last view stays in this window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The stage is full: the view is closed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied a table of %1 lines, with tabs between its columns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A line for each %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The views are those that all of these models have something to show in</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ModelChips</name>
    <message>
        <source>Go to %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop comparing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare A with %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✓ right</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✗ wrong</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A is compared with it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ModelPage</name>
    <message>
        <source>What it is</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notes of opening it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is open.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 layers, %2 parameters, %3 token ids</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It reads and writes text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It reads and writes token ids: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing in its files was passed over.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When it was opened:</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ModelRow</name>
    <message>
        <source>Model %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ModelRows</name>
    <message>
        <source>%1, %2
%3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, %2: %3</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Navigator</name>
    <message>
        <source>opening</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>generating</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not know every word of this prompt. Open or write another prompt: the checkpoint opens with it. (%2)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reading on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cancelling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token %1 is being read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plays as soon as the prompt has been read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not know every word of the prompt that was here: it reads an example of its own.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not know every word of this prompt. Open or write another prompt: the checkpoint opens with it. Or close this message to stay with %2. (%3)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Palette</name>
    <message>
        <source>What to find</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show here · %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>one more view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layer %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Head %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of this layer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Partition %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of the state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to token %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lesson · %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Command, view, model, prompt, layer, head, partition, token or its text, file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was not found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing here is called “%1”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>survival curve, cause of death, what took it, forgotten</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>needle in a haystack, depth and length, recall</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>next token, answer, logits, probabilities</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>memory, heatmap, matrix</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>attention map, what it reads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shipped model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read the prompt %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shipped prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Matches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show here</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::PeerRun</name>
    <message>
        <source>%1 %2 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Opening it was cancelled. Choose it again to compare with it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waits for A</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot follow the cursor: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 splits the text into other tokens (%2): the cursor stands where the same characters end.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has not read the prompt yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the model&apos;s own run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>branch %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Playback</name>
    <message>
        <source>Stopped at token %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No breakpoint at token %1 any more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Breakpoint at token %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Playing loops over tokens %1 to %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Playing goes on to the end, without a loop</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::PreferencesPage</name>
    <message>
        <source>Theme</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type and spacing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Play by itself at the start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the program runs on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Runs on %1.
%2
%3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Follow the desktop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A played step changes the picture at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Soon after the prompt has been read, until you press a key</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::PromptPage</name>
    <message>
        <source>Prompt to begin with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model reads what is said to it, in one turn or several, in the form of its chat template</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token ids of the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Right answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>if it is known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What a right answer says: the model&apos;s own is compared with it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens to generate after the prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens to generate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The selected words are what the model has to remember</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Question</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The selected words ask for the needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The selected words answer the question</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token ids of the prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text of the prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token ids for the model to read, such as 12 7 99</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text for the model to read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was pasted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your own, or begin with…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token ids are whole numbers with spaces between them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model does not know “%1”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model does not know “%1”. It knows: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt that is shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token ids are whole numbers from 0 to %1 with spaces between them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read as a &amp;chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The previous prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat template changes the text, so nothing can be marked in it. Remove the marks, or read it outside a chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New random needles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The engine counts its tokens when it reads it. A chat is read with --chat: its template is with the engine.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::RandomNeedles</name>
    <message>
        <source>Depth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Length of the text: words, or bytes where the model reads bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many needles the text holds; one of them is asked for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How deep the needle stands that is asked for, in percent of the text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Draw needles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needles are drawn with the model&apos;s tokenizer, which is with the engine on another machine.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::RangeBar</name>
    <message>
        <source>The view&apos;s own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All numbers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>98 % of them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fixed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How the colours&apos; range is chosen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Number of the first colour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Number of the last colour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Logarithmic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Numbers beyond the range</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2 beyond</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is wrong with the range</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::RangeHistogram</name>
    <message>
        <source>Histogram of the numbers shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>from %1 to %2</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Side</name>
    <message>
        <source>&lt;p&gt;&lt;b&gt;Statescope %1&lt;/b&gt;&lt;/p&gt;&lt;p&gt;A microscope for the memory of linear-attention language models: step through tokens and see which partition each one is routed to, which rows of the state it writes, what decays, and what a later query can still read back.&lt;/p&gt;&lt;p&gt;Every number shown was computed from the checkpoint; nothing is drawn in between.&lt;/p&gt;&lt;p&gt;Built on Qt %2 (LGPL), Dear ImGui (MIT), HDF5 and Eigen. The DejaVu fonts are free; their licence lies beside them.&lt;/p&gt;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the inspector</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::StartPage</name>
    <message>
        <source>Opened before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lessons</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models that ship with the program</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What do you want to look at?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find a lesson, a model, a prompt or a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What to find</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be opened</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enter opens what is marked. Or drop a checkpoint (.h5), a model&apos;s folder, a prompt or a lesson on the window.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing here is called “%1”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 needles in %2 bytes of English prose</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 needles in %2 words of generated filler</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>one needle in %2 bytes of English prose</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>one needle in %2 words of generated filler</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>finds needles in generated filler</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recalls the values of keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>finds needles in English prose, byte by byte</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 % right with %2 pairs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 % right with %2 in %3 bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 % right with %2 in %3 words</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 needle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 needles</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 in %2 partitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, heads compete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source> and </source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>in the lesson %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>in the lessons %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type here to find something, and open it with Enter.  Then Space plays and pauses, the arrows go from token to token, and F2 opens the lessons.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::TeacherWindow</name>
    <message>
        <source>Look at: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For the teacher – Statescope</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notes to the step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No lesson has begun</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2: %3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run’s answer: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run’s answer is known when it has been asked for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the last step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1   %2 in the lesson</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::TrainingPage</name>
    <message>
        <source>Folder that is watched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the watch does</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How much of the checkpoint has been read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checkpoints, with their verdicts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enter or a click opens one in the window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was found in the chosen checkpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checkpoints that could not be read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the folder that a training writes its checkpoints to: each is inspected as it comes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>checkpoint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>verdict</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skipped until they change:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Perplexity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>exp of the mean −ln p of the next token in the last eighth of the longest prompts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Relative rank</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load entropy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Norm growth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading %1: %2 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped; what was read is kept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for the first checkpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2. Everything has been read; waiting for the next checkpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking for checkpoints.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>effective rank of the states over the largest possible, of the layer where it is lowest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1: all partitions are chosen equally often, 0: one alone is; of the layer where it is lowest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the state&apos;s norm at the end of a prompt over that in its middle, of the layer where it is highest</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::TrainingPlots</name>
    <message>
        <source>Course of the training</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No checkpoint has been read yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 checkpoints, %2 of them ill.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: from %2 to %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model has none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>step %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::Transport</name>
    <message>
        <source>Speed of playing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>/ %1, %2 read</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ViewPanel</name>
    <message>
        <source>View shown here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Way to look at it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token %1 is on its way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 In sight: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl and the wheel enlarge what is under the pointer; the wheel alone then moves it, and 0 shows all of it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All of it is in sight.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In sight: %1. 0 shows all of it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Let go outside this window, the view gets a window of its own</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::ViewWindow</name>
    <message>
        <source>%1 – Statescope</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::WordCompletion</name>
    <message>
        <source>Words that the model knows</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>statescope::WordsPage</name>
    <message>
        <source>answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The words that answer the question.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>approximate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No further off than the bound beside it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>branch, parent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A branch is a run with an intervention. The run that it left is its parent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What nothing has taken of a write: it is left, is not overwritten, and lies where the question reads.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>dead, overloaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>exact</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Kept from the run itself, not worked out again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fair</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How much of a token a partition or a head writes, and how much of what it reads counts. The one with the largest gate wins.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>half-life</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>After how many tokens decay has left half of what was written.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>keyframe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A token after which all states were kept. Those in between are worked out from the keyframe before them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What decay and erasure have not taken of a write. It may still be overwritten, or lie where nobody reads.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>load, visit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lost to decay</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The state shrinks it, token by token.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lost to erasure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A delta rule takes it out before it writes something else.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lost to misrouting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is left, but in a partition that the question does not read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lost to overwriting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is left, but under later writes along the same keys. This is a definition of ours, not a measured cause.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>needle, question</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The needle is what a text tells, the question the words that ask for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>partition, slot</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A slot is one memory of a layer. SSE and MoM have several: one shared by all tokens, and partitions that only those tokens change that are routed to them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>probe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shows what would be, and changes nothing in the run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>receptive field</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How far back a memory reaches: where decay has left a thousandth of a write.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>recomputed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Worked out again from numbers that the run kept. It is right to rounding, not to the last digit.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A model&apos;s reading of one text, with the answer that it gives.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What a layer&apos;s memory holds after a token: for each slot and head a matrix of key rows and value columns.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>write, read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A token writes its key and its value to the state. A query reads from it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find a word</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the words mean</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All words</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>key, value, query</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What a layer makes of a token. The value is written along the key; a later token reads along its query.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layer, head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A model is a stack of layers. The memory of a layer has heads side by side, each with a state of its own.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>norm</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The size of a vector or of a state: the root of the sum of the squares of its numbers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rank</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The effective rank of a state: in how many directions it holds something.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A piece of text that the model reads at once: a word, a part of one, or a byte.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No word here has “%1” in it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>expert, router</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An expert is one of many small networks of a layer. A router sends each token to a few of them, and says how much each counts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Of partitions, once there have been 32 tokens for each of them, and of experts after 32 visits for each: dead is one that no token has visited, overloaded one with a load above 2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A load of 1 is fair: as many visits as the mean of all partitions, or experts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A token that is routed to a partition or goes to an expert visits it. The load is the number of visits divided by the mean: at 1.58 there were 1.58 times as many as on average.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
