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
        <source>As the desktop</source>
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
        <source>Higher view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lower view</source>
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
        <source>To the next view</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To the view before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next view in this place</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next way to look at the same</source>
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
        <source>Back to the place before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forth again</source>
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
        <source>Ten tokens on</source>
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
        <source>Faster</source>
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
        <source>Next step of the lesson, without a lesson the next token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step of the lesson before, without a lesson the token before</source>
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
        <source>Step before</source>
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
        <source>Choice</source>
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
        <source>Show the branch before beside this one</source>
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
        <source>Another number of partitions (top-k)</source>
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
        <source>λ</source>
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
</context>
<context>
    <name>Palette</name>
    <message>
        <source>Compare with %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shipped</source>
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
        <source>e_t = softmax(x_t W_e) over the N partitions; the W largest are decayed and written, the others stay as they are; the shared one is written by every token; SSE eq. 9, MoM likewise. Load: tokens so far, divided by the fair share; 1.00 is fair.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What moves along the run?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lanes over tokens: ‖S_t‖ and ‖S_t − S_{t−1}‖ of every slot; entropy of the routing, −Σ e log e / log N with e of SSE eq. 9; entropy and winner of the head gates G^Q, G^K (SLA eq. 4); ‖x_t‖ as it enters the layer; −ln p of each token.</source>
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
        <source>S_t, K key rows by V value columns, of one slot and head. S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA, SSE eq. 9 to 12, with the gate e as a factor of k); S_t = α_t (S_{t−1} − β_t k_tᵀ (k_t S_{t−1})) + β_t k_tᵀ v_t (gated delta rule). Blue is negative, orange positive. The column beside the rows: norm of S_t − S_{t−1} along each row.</source>
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
        <source>Δ_{t,s} = α_{s+1} · … · α_t is what is left after token t of what token s wrote; S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3; SSE eq. 9: only partitions that are written decay). Half-life: ln 2 / mean(−log α). Receptive field: how far back Δ stays above 0.001, mean over the last 128 tokens (SSE Def. 4, fig. 9). What a delta rule erases is not in it.</source>
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
        <source>The key first reads what is there, π = k S̄ with S̄ = α S; the update takes β kᵀπ away and puts β kᵀv in, so that the key reads π + β ‖k‖² (v − π) afterwards (DeltaNet; Gated DeltaNet eq. 10). Along k the state is multiplied by α (1 − β ‖k‖²): negative where β ‖k‖² &gt; 1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Head-gate contest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which head may write, which one reads?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>G^Q_t = softmax_h(Q_t W_GQ) scales what each head reads, G^K_t = softmax_h(K_t W_GK) what it writes (SLA eq. 4). Entropy: 1 where all heads are alike, 0 where one has everything. C(t,s) = Σ_h G^Q_t G^K_s: what may pass from token s to token t (SLA Thm 4.3). λ multiplies the logits (Thm 4.2): the sharper, the more the winner takes all (SLA eq. 8, 9).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Similarity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which parts of the memory hold the same?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) of key rows of the state, of all partitions of a head (SSE Def. 1; the rows are those that SSE eq. 9 writes), of whole partitions, of heads, and of one state after different tokens. Blue is opposite, white unrelated, orange alike; hatched: one of the two is zero. Clustered: average linkage of 1 − |cos|, so that like rows are neighbours.</source>
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
        <source>Singular values σ of each head&apos;s state, its partitions stacked (the state of SSE eq. 9). Effective rank: exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli). Entropy: −Σ p log p / log n with p = σ² / Σσ² (SSE footnote 8): 0 is one direction, 1 all of them alike.</source>
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
        <source>A_{t,s} with o_t = Σ_s A_{t,s} v_s, exactly, before norm and gate: q_t decayed back to s, times k_s (SSE Def. 3; for the memories of SSE eq. 9, GLA eq. 3 and the delta rule, Gated DeltaNet eq. 10). Bars: what the cursor&apos;s token reads; gold: needle; the pale bar left of them: all earlier tokens. Map: row t reads column s, blue negative, orange positive. Softmax layers: their weights.</source>
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
        <source>S = C + all else, C what is left of what the needle&apos;s tokens wrote; curves: ‖C‖ after each token. Parts of 1 at the question: taken by decay (GLA eq. 3, SSE eq. 9), erased by the delta rule (Gated DeltaNet eq. 10), lying under later writes along the needle&apos;s keys, lying where the question does not read, and clear. Layers count the same, heads by ‖C‖². Read: the needle&apos;s share of what the question reads, the largest of all heads. A description, not a diagnosis: over 2,600 answers of shipped models right and wrong ones hardly differ in what is clear (AUC 0.53) or in what is read (0.57).</source>
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
        <source>p = softmax(z), z = W RMSNorm(x_t) the logits after the cursor&apos;s token (x_t as the last block leaves it; SSE eq. 9 and all other memories speak through it). Beside: the probability of the token that follows and of the right answer&apos;s tokens, the rank of what follows, and the entropy −Σ p log p.</source>
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
        <source>The layers from the embedding up. A grid: one matrix S a head, S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3) or by the delta rule (Gated DeltaNet eq. 10); small squares: partitions that tokens are routed to (SSE eq. 9); lines: the keys and values of every token, softmax attention. States are float32, whatever the weights are.</source>
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
        <source>Where do two models part?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One model&apos;s numbers less the other&apos;s, token by token: e_t = softmax(x_t W_e) of the routing (SSE eq. 9), α of the decay (GLA eq. 3), G^K and G^Q of the head gates (SLA eq. 4). Blue: the other has more, orange: this one has. Hatched: not both have a number there. States and predictions are compared in their own views, as “Other model”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Routing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gates of writing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gates of reading</source>
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
        <source>ω_r, the coefficient with which a token&apos;s value comes to row r: k_r (GLA eq. 3), in SSE&apos;s sparse partitions e k_r (SSE eq. 9), of the delta rule β k_r (Gated DeltaNet eq. 10). A row counts as written where |ω_r| ≥ 0.001 Σ|ω|. Half gone: how far back one has to go for decay to have left half of what stood there. Hatched: never. Effective rows: (Σ|ω|)² / Σω², all of them for equal weights, 1 for a single row.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needle grid</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How deep and how long until a needle is lost?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each cell: of 20 generated texts (those of statescope eval --task niah) how many questions for a needle are answered right in every token, by the length of the text and by how deep in it the needle stands. Whatever lies between needle and question has to leave it in the state S_t (GLA eq. 3, SSE eq. 9, Gated DeltaNet eq. 10). A cell with failures opens one of those very prompts.</source>
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
        <source>After each token: KL(p ‖ p′) = Σ p ln(p / p′) of the next token, p on the branch that was left and p′ here, and max |z′ − z| of the logits. Below: ‖S′ − S‖_F / ‖S‖_F of every layer&apos;s state S_t (GLA eq. 3, SSE eq. 9) after the cursor&apos;s token.</source>
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
        <source>Write it</source>
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
        <source>Seen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How others see it; what is written stays as it is</source>
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
        <source>%1, as it stands now, on white</source>
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
        <source>Writing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It does not say what it was made from: %1</source>
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
        <source>Point at a cell, or choose one with Alt and the arrows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Row %1, column %2 · partition %3, head %4</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Values · %1</source>
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
        <source>What can be said</source>
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
        <source>Usual key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As it came</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All usual keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every command has its key as it came</source>
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
        <source>The run says: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As you said. The run says: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not as you said. The run says: %1.</source>
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
        <source>Drop a checkpoint here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An .h5 file or a model&apos;s folder. Then drop a prompt, or write one.</source>
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
        <source>This arrangement is kept</source>
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
        <source>so asked</source>
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
        <source>No intervention to redo; Shift+Z goes forth again</source>
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
        <source>Checkpoints, sessions, figures (*.h5 *.scope *.pdf *.svg *.png);;All files (*)</source>
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
</context>
<context>
    <name>statescope::Palette</name>
    <message>
        <source>Command, view, layer, head, partition, token or its text, file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What to find</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What fits</source>
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
        <source>As the desktop</source>
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
        <source>A played step is there at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Play by itself at the start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Soon after the first run stands; any key takes over</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the program runs on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Runs on %1.
%2</source>
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
    <message>
        <source>Text of the prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text for the model to read</source>
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
</context>
</TS>
