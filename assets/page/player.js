// The page: views, text, lesson, keys. Every word and number comes from the program; this turns the pages.
'use strict';
(async () => {
  const root = document.documentElement;
  const darkWanted = matchMedia('(prefers-color-scheme: dark)'), stillWanted = matchMedia('(prefers-reduced-motion: reduce)');
  const beat = 500;  // of a played token, ms
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : darkWanted.matches;

  const reels = new Map();
  const scripts = document.getElementsByClassName('view-data');
  function reel(view) {
    const place = data.views[view].data;
    if (!reels.has(place)) reels.set(place, unpacked(scripts[place]).then((bytes) => new Reel(bytes)));
    return reels.get(place);
  }

  // ---- The stage

  const state = {step: 0, token: 0, stop: -1, timer: 0, picture: null, revealed: [], predicted: []};
  let panels = [];  // {view, name of the model, figure, canvas, said}

  const run = () => data.runs[state.picture.run];
  const range = () => {
    const views = state.picture.views.map((view) => data.views[view]);
    return [Math.max(...views.map((view) => view.first)), Math.min(...views.map((view) => view.first + view.tokens - 1))];
  };

  function makePanel(view, name) {
    const facts = data.views[view], figure = document.createElement('figure'), head = document.createElement('figcaption');
    const canvas = document.createElement('canvas'), small = document.createElement('small'), said = document.createElement('p');
    if (name) {
      const letter = document.createElement('span');
      letter.className = 'letter';
      letter.textContent = name;
      head.append(letter);
    }
    head.append(facts.question);
    small.textContent = [facts.title, facts.place, name ? facts.model : ''].filter((words) => words).join(' · ');
    head.append(small);
    canvas.setAttribute('role', 'img');
    canvas.style.aspectRatio = `${facts.size[0]} / ${facts.size[1]}`;
    said.className = 'unseen said';
    figure.append(head, canvas, said);
    const panel = {view, name, figure, canvas, said};
    canvas.addEventListener('pointermove', (event) => event.pointerType === 'mouse' && point(panel, event));
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('click', (event) => choose(panel, event));
    return panel;
  }

  /// On a narrow screen, where views stand below each other, the lesson's first view, of each model, stands in its text: below what to look
  /// at, or, once it shows the answer, below the answer. The others follow the text.
  const narrow = matchMedia('(max-width: 60rem)');
  function placeViews() {
    const inText = narrow.matches && steps.length > 0, question = (panel) => data.views[panel.view].question;
    const named = panels.filter((panel) => inText && question(panel) === question(panels[0]));
    element(element('verdict').textContent ? 'verdict' : 'caption').after(element('named'));
    element('named').replaceChildren(...named.map((panel) => panel.figure));
    element('stage').replaceChildren(...panels.filter((panel) => !named.includes(panel)).map((panel) => panel.figure));
  }

  async function draw(panel) {
    const facts = data.views[panel.view], one = await reel(panel.view), frame = one.frames[state.token - facts.first];
    if (!frame || !panel.canvas.isConnected) return;
    const width = panel.canvas.clientWidth, ratio = devicePixelRatio || 1, height = width * facts.size[1] / facts.size[0];
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (panel.canvas.width !== w || panel.canvas.height !== h) [panel.canvas.width, panel.canvas.height] = [w, h];
    const context = panel.canvas.getContext('2d'), scale = w / facts.size[0];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, h);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.save();
    for (const number of frame.commands) drawCommand(context, one, number, isDark());
    context.restore();
    panel.said.textContent = one.texts[frame.said];
    panel.canvas.setAttribute('aria-label', `${panel.name ? `Model ${panel.name}. ` : ''}${facts.question} ${one.texts[frame.said]}`);
  }
  const drawAll = () => Promise.all(panels.map(draw));

  /// The words under a point of a panel's drawing, in units of the recording; where choosing it leads.
  async function under(panel, x, y) {
    const facts = data.views[panel.view], one = await reel(panel.view), frame = one.frames[state.token - facts.first];
    const place = frame && placeAt(one, frame, x, y);
    return place ? {words: tooltip(one, frame, place), token: tokenOf(one, frame, place)} : {words: '', token: -1};
  }
  function unitsOf(panel, event) {
    const box = panel.canvas.getBoundingClientRect(), scale = data.views[panel.view].size[0] / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }
  const hideTip = () => { element('tip').hidden = true; };
  function showTip(words, x, y) {
    const tip = element('tip');
    tip.textContent = words;
    tip.hidden = !words;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height < innerHeight ? y + 18 : Math.max(4, y - box.height - 12)}px`;
  }
  async function point(panel, event) {
    const {words} = await under(panel, ...unitsOf(panel, event));
    showTip(words, event.clientX, event.clientY);
  }
  async function choose(panel, event) {
    takeOver();
    const {words, token} = await under(panel, ...unitsOf(panel, event));
    if (event.pointerType !== 'mouse') return showTip(words, event.clientX, event.clientY);
    if (token >= 0) goTo(token);
  }

  // ---- The text and the tokens

  let shownRun = -1, tokens = [];
  function showText() {
    if (shownRun === state.picture.run) return;
    shownRun = state.picture.run;
    const {tokens: words, spans, prompt} = run(), parts = document.createDocumentFragment();
    const kinds = words.map((_, i) => (i >= prompt ? ['generated'] : []));
    for (const [kind, begin, end] of spans) for (let i = begin; i < Math.min(end, words.length); ++i) kinds[i].push(kind);
    tokens = words.map((word, i) => {
      const token = document.createElement('span');
      token.className = ['token', ...kinds[i]].join(' ');
      token.textContent = word;
      token.title = [`token ${i}`, ...kinds[i]].join(', ');
      token.addEventListener('click', () => { takeOver(); goTo(i); });
      parts.append(token);
      return token;
    });
    element('text').replaceChildren(parts);
  }
  function markToken() {
    const [first, last] = range();
    tokens.forEach((token, i) => {
      token.classList.toggle('here', i === state.token);
      token.classList.toggle('outside', i < first || i > last);  // these views were recorded without it
      i === state.token ? token.setAttribute('aria-current', 'true') : token.removeAttribute('aria-current');
    });
    const here = tokens[state.token], box = element('text');
    if (here) box.scrollTop = here.offsetTop - box.clientHeight / 2 + here.offsetHeight / 2;
    const slider = element('slider');
    [slider.min, slider.max, slider.value] = [first, last, state.token];
    slider.setAttribute('aria-valuetext', `token ${state.token}: ${run().tokens[state.token]}`);
    element('token').textContent = `token ${state.token} of ${run().tokens.length}: ${run().tokens[state.token]}`;
    element('back').disabled = element('first').disabled = state.token <= first;
    element('forward').disabled = element('last').disabled = state.token >= last;
    root.dataset.token = state.token;
  }

  function goTo(token) {
    const [first, last] = range();
    state.token = Math.min(last, Math.max(first, token));
    hideTip();
    markToken();
    showStepPlace();
    if (!state.timer) element('live').textContent = `token ${state.token}: ${run().tokens[state.token]}`;
    return drawAll();
  }
  function step(by) {
    takeOver();
    goTo(state.token + by);
  }

  // ---- Playing

  function pause() {
    clearInterval(state.timer);
    state.timer = 0;
    element('play').textContent = 'Play';
  }
  function play(until) {
    pause();
    const [first, last] = range();
    state.stop = Math.min(until, last);
    if (state.token >= state.stop) goTo(first);
    element('play').textContent = 'Pause';
    state.timer = setInterval(() => {
      goTo(state.token + 1);
      if (state.token >= state.stop) pause();
    }, beat);
  }
  /// Whatever the reader does ends what plays by itself.
  let opening = 0;
  function takeOver() {
    clearTimeout(opening);
    pause();
  }

  function show(picture, plays) {
    pause();
    const same = state.picture && [...state.picture.views, ...state.picture.letters].join() === [...picture.views, ...picture.letters].join();
    state.picture = picture;
    if (!same) {
      panels = picture.views.map((view, i) => makePanel(view, picture.letters[i]));
    }
    placeViews();
    showText();
    const moves = plays && picture.play !== null && picture.play < picture.token && !stillWanted.matches;
    const drawn = goTo(moves ? picture.play : picture.token);
    if (moves) play(picture.token);
    return drawn;
  }

  // ---- The lesson

  const steps = data.steps, current = () => steps[state.step];
  const isRevealed = () => !current().question || state.revealed[state.step];
  const pictureOf = () => isRevealed() ? current().revealed : current().picture;

  function showStepPlace() {
    if (steps.length > 0) element('back-to-picture').hidden = state.timer !== 0 || state.token === pictureOf().token;
  }
  function showStep() {
    const one = current(), question = one.question, revealed = isRevealed(), predicted = state.predicted[state.step];
    element('heading').textContent = one.title;
    element('caption').textContent = pictureOf().caption ? `Look at: ${pictureOf().caption}` : '';
    element('prose').innerHTML = one.prose;
    element('question').textContent = question ? question.words : '';
    element('choices').replaceChildren(...(question ? question.choices : []).map((words, i) => {
      const button = document.createElement('button'), right = revealed && question.right === i;
      const wrong = revealed && predicted === i && question.right !== null && !right;
      button.type = 'button';
      button.textContent = `${right ? '✓ ' : wrong ? '✗ ' : `${i + 1}  `} ${words}`;
      button.className = [right ? 'right' : '', predicted === i ? 'chosen' : ''].join(' ');
      button.disabled = revealed;
      if (right || wrong) button.setAttribute('aria-label', `${words}, ${right ? 'the run’s answer' : 'your prediction'}`);
      button.addEventListener('click', () => reveal(i));
      return button;
    }));
    const answer = !question ? '' : predicted === undefined ? question.open : predicted === question.right ? question.asSaid : question.notAsSaid;
    element('verdict').textContent = revealed ? answer : '';
    element('reveal').innerHTML = revealed ? one.reveal : '';
    element('broken').textContent = one.broken;
    element('place').textContent = `${state.step + 1} of ${steps.length}`;
    element('previous').disabled = state.step === 0;
    element('next').disabled = revealed && state.step + 1 === steps.length;
    root.dataset.step = state.step + 1;
  }
  function enter(number, plays) {
    takeOver();
    state.step = number;
    showStep();
    element('lesson').scrollTop = 0;
    return show(pictureOf(), plays);
  }
  function reveal(choice) {
    if (isRevealed()) return;
    takeOver();
    state.revealed[state.step] = true;
    if (choice !== undefined) state.predicted[state.step] = choice;
    const chosenByButton = element('choices').contains(document.activeElement);
    showStep();
    if (chosenByButton) element('verdict').focus({preventScroll: true});  // the button is gone
    const drawn = show(pictureOf(), true);
    element('verdict').scrollIntoView({block: narrow.matches ? 'start' : 'nearest'});
    return drawn;
  }
  function next() {
    if (!isRevealed()) return reveal();
    if (state.step + 1 < steps.length) turnTo(state.step + 1, true);
  }
  function previous() {
    if (state.step > 0) turnTo(state.step - 1, false);
  }
  function turnTo(number, plays) {
    enter(number, plays);
    element('heading').focus({preventScroll: true});
    if (element('lesson').getBoundingClientRect().top < 0) element('lesson').scrollIntoView();
  }

  // ---- Keys, buttons, the address

  const togglePlay = () => state.timer ? takeOver() : (takeOver(), play(Infinity));
  const keys = {
    ArrowLeft: (event) => step(event.shiftKey ? -10 : -1),
    ArrowRight: (event) => step(event.shiftKey ? 10 : 1),
    Home: () => step(-Infinity),
    End: () => step(Infinity),
    ' ': togglePlay,
    Escape: hideTip,
  };
  const lessonKeys = {n: next, PageDown: next, Enter: next, p: previous, PageUp: previous, h: () => enter(state.step, true)};
  function answerKey(key) {
    const question = !isRevealed() && current().question, letter = key.length === 1 ? '123456789'.indexOf(key) : -1;
    const choice = letter >= 0 ? letter : key.length === 1 ? 'abcdefg'.indexOf(key.toLowerCase()) : -1;
    return question && choice >= 0 && choice < question.choices.length ? () => reveal(choice) : undefined;
  }
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const focus = document.activeElement, pressed = focus && focus.tagName === 'BUTTON' && (event.key === ' ' || event.key === 'Enter');
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = pressed ? undefined : keys[name] || (steps.length > 0 ? answerKey(event.key) || lessonKeys[name] : undefined);
    if (!action) return;
    event.preventDefault();
    action(event);
  });
  const onClick = (id, action) => element(id).addEventListener('click', action);
  onClick('first', () => step(-Infinity));
  onClick('back', () => step(-1));
  onClick('play', togglePlay);
  onClick('forward', () => step(1));
  onClick('last', () => step(Infinity));
  onClick('next', next);
  onClick('previous', previous);
  onClick('back-to-picture', () => enter(state.step, true));
  onClick('theme', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    drawAll();
  });
  element('slider').addEventListener('input', (event) => { takeOver(); goTo(Number(event.target.value)); });
  // What is scrolled to, by the keyboard's focus too, does not end behind the foot of the page, which stays in sight.
  const foot = document.querySelector('footer');
  new ResizeObserver(() => { root.style.scrollPaddingBottom = `${foot.offsetHeight + 8}px`; }).observe(foot);
  narrow.addEventListener('change', () => { placeViews(); drawAll(); });
  darkWanted.addEventListener('change', drawAll);
  addEventListener('resize', drawAll);
  addEventListener('scroll', hideTip, {passive: true});

  /// #step=3&answer=1&token=12&theme=dark: where to stand; answer 0 is none. &point=0,120,80: what stands there in the first view.
  async function goToAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1)), number = (name) => wanted.has(name) ? Number(wanted.get(name)) : NaN;
    takeOver();
    if (['light', 'dark'].includes(wanted.get('theme'))) root.dataset.theme = wanted.get('theme');
    if (steps.length > 0) {
      await enter(Math.min(steps.length, Math.max(1, number('step') || 1)) - 1, location.hash.length < 2 || wanted.has('play'));
      const choice = number('answer');
      if (choice >= 0 && current().question) await reveal(choice >= 1 && choice <= current().question.choices.length ? choice - 1 : undefined);
    } else {
      await show(data.picture, false);
    }
    if (location.hash.length > 1 && !wanted.has('play')) takeOver();
    if (Number.isInteger(number('token'))) await goTo(number('token'));
    else if (location.hash.length > 1 && steps.length > 0) await goTo(pictureOf().token);
    if (wanted.has('point')) {
      const [panel, x, y] = wanted.get('point').split(',').map(Number);
      if (panels[panel]) showTip((await under(panels[panel], x, y)).words, 20, 20);
    }
    performance.mark('ready');
    root.dataset.ready = 'yes';
  }

  element('title').textContent = data.title;
  element('about').textContent = data.about;
  element('lesson').hidden = element('lesson-keys').hidden = steps.length === 0;
  try {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old to unpack it; any of 2023 or later can');
    addEventListener('hashchange', goToAddress);
    await goToAddress();
    if (steps.length === 0 && !location.hash && !stillWanted.matches) opening = setTimeout(() => play(Infinity), 1000);
  } catch (error) {
    element('problem').textContent = `This page cannot be shown: ${error.message}.`;
    element('problem').hidden = false;
  }
})();
