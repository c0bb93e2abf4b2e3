"use strict";
(() => {
  // Every text of an item reaches the page through textContent alone: none of it is ever parsed as markup.
  const sheet = JSON.parse(document.getElementById("sheet").textContent);
  const { fields, items, words } = sheet;
  const free = Object.keys(sheet.free);
  const storeKey = `rag-judge-review/${sheet.sheet}`;
  const IDLE_S = 120;
  const REMIND_EVERY = 20;
  const $ = (id) => document.getElementById(id);
  const say = (name, values = {}) =>
    Object.entries(values).reduce((text, [key, value]) => text.replaceAll(`{${key}}`, value), words[`js.${name}`]);

  // --- what is kept ------------------------------------------------------------------------------------------------

  // labels: item id -> {field, critique, note: what was said}; nothing said is no entry.
  let state = { labels: {}, seconds: {}, at: 0, changes: 0 };
  let keeps = true;
  const undos = [];
  let current = 0;
  let highlighted = false;
  let lastActive = Date.now();

  const load = () => {
    try {
      const kept = localStorage.getItem(storeKey);
      if (kept) state = { ...state, ...JSON.parse(kept) };
    } catch {
      keeps = false;
    }
    state.at = Math.min(Math.max(0, state.at | 0), Math.max(0, items.length - 1));
  };
  const keep = () => {
    try {
      localStorage.setItem(storeKey, JSON.stringify(state));
    } catch {
      keeps = false;
    }
    $("kept").hidden = keeps;
    $("kept").textContent = keeps ? "" : say("not_kept");
  };

  const item = () => items[state.at];
  const said = (id) => state.labels[id] ?? {};
  // Causes are asked of answers that failed only; every other field makes an item done.
  const needed = fields.filter((field) => field.kind !== "cause");
  const isDone = (id) => needed.every((field) => said(id)[field.name] !== undefined);
  const asksWhy = (id) => fields.some((field) => field.asks_why_of.includes(said(id)[field.name]));

  const change = (ids, apply) => {
    const before = Object.fromEntries(ids.map((id) => [id, state.labels[id] && { ...state.labels[id] }]));
    undos.push({ before, at: state.at, current });
    apply();
    state.changes += 1;
    keep();
    if (state.changes % REMIND_EVERY === 0) status(say("remind", { n: state.changes }));
  };
  const put = (id, name, value) => {
    const label = { ...said(id) };
    if (value === undefined || value === "") delete label[name];
    else label[name] = value;
    if (Object.keys(label).length) state.labels[id] = label;
    else delete state.labels[id];
  };
  const undo = () => {
    const last = undos.pop();
    if (!last) return status(say("nothing_to_undo"));
    for (const [id, label] of Object.entries(last.before)) {
      if (label) state.labels[id] = label;
      else delete state.labels[id];
    }
    state.changes += 1;
    if (last.at !== state.at) leave();
    state.at = last.at;
    current = last.current;
    keep();
    show();
    status(say("undone"));
  };

  // Time on an item, without the pauses in which nothing was touched.
  const tick = () => {
    const now = Date.now();
    const spent = Math.min((now - lastActive) / 1000, IDLE_S);
    if (item() && !document.hidden) state.seconds[item().id] = Math.round(((state.seconds[item().id] ?? 0) + spent) * 10) / 10;
    lastActive = now;
  };
  const leave = () => {
    commit();
    tick();
    highlighted = false;
  };

  // --- the page ----------------------------------------------------------------------------------------------------

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const textOf = (text, className, marks) => {
    const box = make("div", `text ${className}`);
    let end = 0;
    for (const [start, stop, kind] of marks ?? []) {
      box.append(text.slice(end, start), make("mark", kind, text.slice(start, stop)));
      end = stop;
    }
    box.append(text.slice(end));
    // Last: with it, the browser looks at the whole text again for every piece that is added.
    box.dir = "auto";
    return box;
  };
  const status = (text) => {
    $("status").textContent = text;
  };

  const showTexts = () => {
    const { question, history, answers, contexts } = item();
    const marks = highlighted ? shared(answers, contexts) : null;
    const two = answers.length > 1;
    const box = $("texts");
    box.replaceChildren();
    if (history.length) {
      box.append(make("h3", "", box.dataset.history));
      for (const turn of history) box.append(textOf(turn, "history"));
    }
    box.append(make("h3", "", box.dataset.question), textOf(question, "question"));
    const row = make("div", two ? "answers two" : "answers");
    answers.forEach((answer, i) => {
      const cell = make("div");
      cell.append(make("h3", "", two ? say("answer_of", { name: "AB"[i] }) : say("answer")));
      cell.append(answer ? textOf(answer, "answer", marks?.answers[i]) : make("div", "answer empty", say("empty_answer")));
      row.append(cell);
    });
    box.append(row);
    box.scrollTop = 0;
    const right = $("contexts");
    right.replaceChildren();
    contexts.forEach((cards, i) => {
      right.append(make("h3", "", contexts.length > 1 ? say("contexts_of", { name: "AB"[i] }) : say("contexts")));
      if (!cards?.length) right.append(make("p", "empty", say(cards ? "empty_contexts" : "no_contexts")));
      (cards ?? []).forEach((card, rank) => {
        const box = make("article", "card");
        const title = make("p", "title");
        title.append(make("span", "rank", String(rank + 1)), make("span", "id", card.id));
        box.append(title, textOf(card.text, "context", marks?.contexts[i][rank]));
        right.append(box);
      });
    });
    right.scrollTop = 0;
  };

  const showForm = () => {
    const id = item().id;
    fields.forEach((field, i) => {
      const box = $(`field-${i}`);
      box.classList.toggle("current", i === current);
      const value = said(id)[field.name];
      for (const button of box.querySelectorAll("button")) button.ariaChecked = String(button.value === value);
      const select = box.querySelector("select");
      if (select) select.value = value ?? "";
    });
    for (const name of free) {
      const box = $(name);
      if (document.activeElement !== box) box.value = said(id)[name] ?? "";
    }
    const asked = asksWhy(id) && !said(id).critique;
    $("critique").parentElement.classList.toggle("asked", asked);
    $("critique").placeholder = asked ? say("why") : sheet.free.critique.question;
    const done = items.filter(({ id }) => isDone(id)).length;
    $("progress").textContent = say("progress", { at: state.at + 1, n: items.length, done });
    $("bar").max = items.length;
    $("bar").value = done;
    const empty = !Object.keys(state.labels).length;
    $("unsaved").textContent = state.changes ? say("unsaved", { n: state.changes }) : say(empty ? "nothing" : "saved");
    document.querySelector('[data-does="highlight"]').ariaPressed = String(highlighted);
  };
  const show = () => {
    if (!item()) return;
    showTexts();
    showForm();
  };

  const makeField = (field, i) => {
    const isCause = field.kind === "cause";
    const box = make("div", isCause ? "field cause" : "field");
    box.id = `field-${i}`;
    box.title = field.how;
    const asks = make("div", "asks");
    asks.id = `asks-${i}`;
    asks.append(make("b", "", field.label), make("span", "", isCause ? "" : field.question));
    box.append(make("span", "number", fields.length > 1 ? String(i + 1) : ""), asks);
    if (isCause) {
      const select = make("select");
      select.id = "cause";
      select.ariaLabel = field.question;
      select.append(new Option(say("no_cause"), ""), ...field.options.map(({ value, label }) => new Option(label, value)));
      select.addEventListener("change", () => answer(i, select.value || undefined));
      box.append(select);
      return box;
    }
    const choices = make("div", "choices");
    choices.role = "radiogroup";
    choices.setAttribute("aria-labelledby", asks.id);
    for (const { value, label, key } of field.options) {
      const button = make("button", "", `${label} `);
      button.type = "button";
      button.value = value;
      button.role = "radio";
      if (key && key !== label) button.append(make("kbd", "", key));
      button.addEventListener("click", () => answer(i, value));
      choices.append(button);
    }
    box.append(choices);
    return box;
  };
  const makeFree = (name) => {
    const box = make("div", "free");
    const label = make("label", "", `${sheet.free[name].label} `);
    label.htmlFor = name;
    label.append(make("kbd", "", name === "critique" ? "c" : "m"));
    const text = make("textarea");
    text.id = name;
    text.rows = name === "critique" ? 2 : 1;
    text.dir = "auto";
    text.placeholder = sheet.free[name].question;
    text.title = sheet.free[name].how;
    text.addEventListener("change", commit);
    box.append(label, text);
    return box;
  };

  // --- what a reviewer does ------------------------------------------------------------------------------------------

  const answer = (i, value) => {
    commit();
    const id = item().id;
    current = i;
    change([id], () => put(id, fields[i].name, value));
    const open = needed.find((field) => said(id)[field.name] === undefined);
    if (value !== undefined && open) current = fields.indexOf(open);
    if (value !== undefined && !open) status(say(items.every(({ id }) => isDone(id)) ? "all_done" : "item_done"));
    else if (state.changes % REMIND_EVERY) status("");
    showForm();
    $(`field-${current}`).scrollIntoView({ block: "nearest" });
  };
  // What stands in the text boxes becomes part of the label; called before anything else is done with it.
  const commit = () => {
    if (!item()) return;
    const id = item().id;
    const changed = free.filter((name) => $(name).value.trim() !== (said(id)[name] ?? ""));
    if (!changed.length) return;
    change([id], () => changed.forEach((name) => put(id, name, $(name).value.trim())));
    showForm();
  };
  const go = (to) => {
    if (to < 0 || to >= items.length || to === state.at) return;
    document.activeElement?.blur();
    leave();
    state.at = to;
    current = Math.max(0, fields.indexOf(needed.find((field) => said(items[to].id)[field.name] === undefined)));
    keep();
    status("");
    show();
    scrollTo(0, 0);
  };
  const gap = () => {
    commit();
    const order = items.map((_, i) => (state.at + 1 + i) % items.length);
    const to = order.find((i) => !isDone(items[i].id));
    if (to === undefined) status(say("no_gap"));
    else go(to);
  };
  const clear = () => {
    if (said(item().id)[fields[current].name] !== undefined) answer(current, undefined);
  };
  const highlight = () => {
    highlighted = !highlighted;
    show();
    status(highlighted ? say("highlight_on") : "");
  };
  const focusOn = (id) => {
    $(id)?.focus();
    $(id)?.scrollIntoView({ block: "nearest" });
  };

  // --- out and in ------------------------------------------------------------------------------------------------------

  const exported = () => ({
    format: sheet.format,
    sheet: sheet.sheet,
    annotator: sheet.annotator,
    instructions_version: sheet.instructions_version,
    labels: items
      .filter(({ id }) => state.labels[id])
      .map(({ id, digest }) => ({ item: id, digest, ...state.labels[id], seconds: state.seconds[id] ?? 0 })),
  });
  const save = () => {
    commit();
    tick();
    const name = `labels-${sheet.annotator.replace(/[^\p{L}\p{N}_-]+/gu, "-")}-${sheet.sheet}.json`;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([`${JSON.stringify(exported(), null, 1)}\n`], { type: "application/json" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    state.changes = 0;
    keep();
    showForm();
    status(say("exported", { name }));
  };
  const isKnown = (label) => {
    if (!label || !items.some(({ id }) => id === label.item)) return false;
    const fieldsKnown = fields.every(({ name, options }) => label[name] === undefined || options.some(({ value }) => value === label[name]));
    return fieldsKnown && free.every((name) => label[name] === undefined || typeof label[name] === "string");
  };
  const take = async (file) => {
    let given = null;
    try {
      given = JSON.parse(await file.text());
    } catch {
      given = null;
    }
    const name = file.name;
    if (given?.format !== sheet.format || !Array.isArray(given.labels)) return status(say("import_not_json", { name }));
    if (given.sheet !== sheet.sheet) return status(say("import_other", { name }));
    if (!given.labels.every(isKnown)) return status(say("import_bad", { name }));
    commit();
    change(given.labels.map((label) => label.item), () => {
      for (const label of given.labels) {
        for (const key of [...fields.map((field) => field.name), ...free]) {
          if (label[key] !== undefined) put(label.item, key, label[key]);
        }
        if (Number.isFinite(label.seconds)) {
          state.seconds[label.item] = Math.max(state.seconds[label.item] ?? 0, label.seconds);
        }
      }
    });
    show();
    return status(say("imported", { n: given.labels.length, name }));
  };

  // --- highlights: what answer and contexts share ------------------------------------------------------------------------

  const TOKEN = /\p{N}+(?:[.,:/]\p{N}+)*(?:\s?[%％])?|\p{Script=Han}|[\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{M}]+/gu;
  const isNumber = (word) => /^\p{N}/u.test(word);
  const isChinese = (word) => /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u.test(word);
  const tokens = (text) =>
    [...text.matchAll(TOKEN)].map((found) => ({
      word: found[0].normalize("NFKC").toLowerCase().replace(/\s/g, ""),
      start: found.index,
      end: found.index + found[0].length,
    }));
  // 三 and 3 are one number: the value of a number in Chinese characters, as digits.
  const CHINESE_NUMBER = /[零〇一二两三四五六七八九十百千万]+/g;
  const chineseValue = (text) => {
    let [total, section, digit] = [0, 0, 0];
    for (const character of text) {
      const unit = { 十: 10, 百: 100, 千: 1000, 万: 10000 }[character];
      if (!unit) digit = Math.max(0, "零一二三四五六七八九".indexOf(character.replace("两", "二").replace("〇", "零")));
      else if (unit === 10000) [total, section, digit] = [(total + section + digit) * unit, 0, 0];
      else [section, digit] = [section + (digit || 1) * unit, 0];
    }
    return String(total + section + digit);
  };
  const numbersIn = (text) => [
    ...tokens(text).map(({ word }) => word).filter(isNumber),
    ...[...text.matchAll(CHINESE_NUMBER)].map(([found]) => chineseValue(found)),
  ];
  // Three words, or four characters of Chinese, in a row are a phrase.
  const phrases = (list) => {
    const found = [];
    for (let i = 0; i < list.length; i += 1) {
      let run = list.slice(i, i + 3);
      if (run.some(({ word }) => isChinese(word))) run = list.slice(i, i + 4);
      if (run.length >= (run.some(({ word }) => isChinese(word)) ? 4 : 3)) found.push([i, run.length, run.map(({ word }) => word).join(" ")]);
    }
    return found;
  };
  const marksOf = (list, other) => {
    const kinds = Array(list.length).fill("");
    for (const [i, n, phrase] of phrases(list)) if (other.phrases.has(phrase)) kinds.fill("shared", i, i + n);
    list.forEach(({ word }, i) => {
      if (isNumber(word)) kinds[i] = other.numbers.has(word) ? "number" : other.isContexts ? "nowhere" : kinds[i];
    });
    const marks = [];
    list.forEach(({ start, end }, i) => {
      const last = marks.at(-1);
      if (!kinds[i]) return;
      if (last && kinds[i] === "shared" && last[2] === "shared" && kinds[i - 1] === "shared") last[1] = end;
      else marks.push([start, end, kinds[i]]);
    });
    return marks;
  };
  const known = (texts, isContexts) => ({
    phrases: new Set(texts.flatMap((text) => phrases(tokens(text)).map(([, , phrase]) => phrase))),
    numbers: new Set(texts.flatMap(numbersIn)),
    isContexts,
  });
  const shared = (answers, contexts) => {
    const cards = contexts.map((part) => (part ?? []).map(({ text }) => text));
    const apart = contexts.length > 1;
    const inContexts = cards.map((part) => known(part, true));
    const inAnswers = cards.map((_, i) => known(apart ? [answers[i]] : answers, false));
    return {
      answers: answers.map((text, i) => marksOf(tokens(text), inContexts[apart ? i : 0])),
      contexts: cards.map((part, i) => part.map((text) => marksOf(tokens(text), inAnswers[i]))),
    };
  };

  // --- keys ----------------------------------------------------------------------------------------------------------------

  const does = {
    previous: () => go(state.at - 1),
    next: () => go(state.at + 1),
    gap,
    undo: () => {
      commit();
      undo();
    },
    highlight,
    export: save,
    import: () => $("file").click(),
    help: () => $("help").showModal(),
    close: () => $("help").close(),
  };
  const keys = {
    j: does.next, ArrowRight: does.next, k: does.previous, ArrowLeft: does.previous, g: gap, z: does.undo, h: highlight,
    e: save, "?": does.help, "？": does.help, Backspace: clear, r: () => focusOn("cause"), c: () => focusOn("critique"), m: () => focusOn("note"),
  };
  const onKey = (event) => {
    if (event.isComposing || event.altKey || $("help").open) return;
    // A list of causes takes the arrows and the space bar only: no letter meant for the page may change the cause.
    const inList = event.target.matches?.("select") && (event.key === " " || event.key.length > 1);
    const typing = inList || event.target.matches?.("textarea, input");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      save();
    } else if (typing && event.key === "Escape") {
      event.target.blur();
    } else if (!typing && !event.ctrlKey && !event.metaKey && item()) {
      const key = event.key.length === 1 ? event.key.normalize("NFKC").toLowerCase() : event.key;
      const option = fields[current].options.find((each) => each.key && each.key === key);
      const field = fields[Number(key) - 1];
      if (option) answer(current, option.value);
      else if (keys[key]) keys[key]();
      else if (field && fields.length > 1) {
        current = Number(key) - 1;
        showForm();
        if (field.kind === "cause") focusOn("cause");
      } else return;
      event.preventDefault();
    }
  };

  load();
  const texts = $("texts");
  texts.dataset.question = words["js.question"];
  texts.dataset.history = words["js.history"];
  $("form").append(...fields.map(makeField), ...free.map(makeFree));
  $("form").addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-does]")) button.addEventListener("click", () => does[button.dataset.does]());
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (file) await take(file);
    $("file").value = "";
  });
  addEventListener("keydown", onKey);
  for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, tick, { passive: true });
  addEventListener("pagehide", () => {
    leave();
    keep();
  });
  addEventListener("beforeunload", (event) => {
    commit();
    if (!keeps && state.changes) event.preventDefault();
  });
  keep();
  current = item() ? Math.max(0, fields.indexOf(needed.find((field) => said(item().id)[field.name] === undefined))) : 0;
  show();
  if (!Object.keys(state.labels).length) does.help();
})();
