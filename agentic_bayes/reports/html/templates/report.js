"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = (id) => JSON.parse($(id).textContent);
  const narrow = matchMedia("(max-width: 640px)").matches;
  const PAGE = narrow ? 20 : 50;
  const WORDS = { pass: "passed", fail: "failed", unscored: "not scored", errored: "agent error", "": "not counted" };
  const LABELS = { user: "User", agent: "Agent", error: "Error", reference: "Reference answer", call: "Call",
    result: "Result", expected: "Expected call" };
  // controls, format characters (bidi, zero width), halves of pairs, private use: all that nobody would see
  const UNSEEN = /([\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}])/u;

  const LONG_WORD = /\S{25}/u; // may be broken anywhere, a short text nowhere

  const make = (tag, name = "", ...children) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children);
    return made;
  };
  // foreign text: only ever text nodes, in a direction of its own, with a mark for what cannot be seen
  const shown = (text, tag = "bdi") => {
    const made = make(tag, LONG_WORD.test(text) ? "long" : text.length < 25 ? "short" : "");
    made.dir = "auto";
    for (const part of String(text).split(UNSEEN)) {
      const code = part ? part.codePointAt(0) : 0;
      const unseen = part && UNSEEN.test(part) && part !== "\n" && part !== "\t";
      if (unseen) made.append(make("span", "cp", `U+${code.toString(16).toUpperCase().padStart(4, "0")}`));
      else if (part) made.append(part);
    }
    return made;
  };

  // an agent's name, a long one in brief; whole when it is pointed at
  const agentName = ({ name, brief }) => {
    const made = shown(brief || name);
    if (brief) made.title = name.replace(new RegExp(UNSEEN, "gu"), "\uFFFD");
    return made;
  };

  const taskName = (i) => agentName({ name: names[i], brief: briefs[i] });

  // ---- light and dark
  const theme = $("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const showTheme = () => { theme.textContent = isDark() ? "Light mode" : "Dark mode"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  showTheme();

  // ---- the slider of k
  const numbers = data("data-numbers");
  const slider = $("k");
  const kRows = [...document.querySelectorAll("#k-table tbody tr")];
  const cursors = [...document.querySelectorAll("svg.curves[data-x]")].map((svg) => [
    svg.querySelector(".cursor"), svg.dataset.x.split(" ")]);
  const showK = () => {
    const place = Number(slider.value);
    const [k, rows] = numbers[place];
    slider.setAttribute("aria-valuetext", String(k));
    $("k-value").textContent = k;
    $("k-caption").textContent = k;
    kRows.forEach((row, i) => rows[i].forEach((text, j) => { row.cells[j + 1].textContent = text; }));
    for (const [line, x] of cursors) { line.setAttribute("x1", x[place]); line.setAttribute("x2", x[place]); }
  };
  slider.addEventListener("input", showK);

  // ---- the slider of the judge's threshold, which points at a row of its table
  const cut = $("cut");
  if (cut) {
    const rows = [...document.querySelectorAll("#cut-table tbody tr")];
    const showCut = () => {
      const row = rows[cut.value], [threshold] = row.cells;
      rows.forEach((other) => other.toggleAttribute("data-chosen", other === row));
      cut.setAttribute("aria-valuetext", threshold.textContent);
      $("cut-value").replaceChildren(make("b", "", threshold.textContent), " ", shown(row.dataset.verdict));
    };
    cut.addEventListener("input", showCut);
    showCut();
    $("by-threshold").hidden = false;
  }

  // ---- the table of tasks, a page of rows at a time
  const tasks = data("data-tasks");
  const { names, briefs, agents, difference } = tasks;
  const low = names.map((name) => name.toLowerCase());
  const collator = new Intl.Collator("en", { numeric: true });
  const named = names.map((_, i) => i).sort((a, b) => collator.compare(names[a], names[b]) || a - b);
  const rank = new Array(names.length);
  named.forEach((task, place) => { rank[task] = place; });
  let trials = null; // read when it is first needed
  let parts = [];
  const byTask = () => {
    if (trials) return trials;
    const read = data("data-trials");
    parts = read.parts;
    trials = new Map();
    for (const one of read.trials) for (const task of one[1]) {
      if (!trials.has(task)) trials.set(task, []);
      trials.get(task).push(one);
    }
    return trials;
  };
  const canOpen = $("data-trials").dataset.some === "yes";

  const counts = (agent, i) => {
    const asked = agent.scored[i] + agent.unscored[i];
    if (!asked) return ["–", "not attempted"];
    const more = [];
    if (agent.unscored[i]) more.push(`${agent.unscored[i]} not scored`);
    if (agent.errored[i]) more.push(`of these ${agent.errored[i]} agent error${agent.errored[i] > 1 ? "s" : ""}`);
    if (!agent.scored[i]) return ["–", `nothing was scored, ${more.join(", ")}`];
    return [`${agent.passed[i]} of ${agent.scored[i]}`, more.join(", ")];
  };
  const columns = [{ title: ["task"], key: (i) => rank[i] }];
  const fillAgent = (agent, cell, i) => {
    const [text, more] = counts(agent, i);
    cell.append(text);
    if (more) cell.append(make("span", "part words", more));
    if (agent.mean[i] !== null) cell.append(make("span", "part", agent.text[i]));
  };
  // of many agents a few have columns, the last of them whichever the reader chooses
  const shownAgents = tasks.shown.map((i) => agents[i]);
  const other = $("who");
  shownAgents.forEach((agent, place) => {
    const chosen = () => (other && place === shownAgents.length - 1 ? agents[other.value] : agent);
    columns.push({ title: [agentName(agent)], label: () => chosen().brief || chosen().name, key: (i) => chosen().mean[i],
      fill: (cell, i) => fillAgent(chosen(), cell, i) });
  });
  const total = (name, i) => agents.reduce((sum, agent) => sum + agent[name][i], 0);
  if (shownAgents.length < agents.length) {
    const share = (i) => (total("scored", i) ? total("passed", i) / total("scored", i) : null);
    columns.push({ title: ["all agents"], key: share,
      fill: (cell, i) => cell.append(share(i) === null ? "–" : `${total("passed", i)} of ${total("scored", i)}`) });
  }
  for (const [metric, { mean, text }] of Object.entries(agents[0].more || {})) {
    columns.push({ title: [metric], key: (i) => mean[i], fill: (cell, i) => cell.append(text[i]) });
  }
  if (difference) {
    columns.push({ title: [shown(difference.head[0])], label: () => difference.head[0], key: (i) => difference.mean[i],
      fill: (cell, i) => cell.append(difference.text[i]) });
    columns.push({ title: [shown(difference.head[1])], label: () => difference.head[1], key: (i) => difference.better[i],
      fill: (cell, i) => {
        const [chance, sure] = difference.share[i].split("\n");
        cell.append(chance);
        if (sure) cell.append(make("span", "part", sure));
      } });
  }
  const ONLY = {
    all: () => true,
    failed: (i) => total("passed", i) < total("scored", i),
    unscored: (i) => total("unscored", i) > 0,
    never: (i) => total("scored", i) > 0 && total("passed", i) === 0,
    lost: (i) => difference.lead[i] < 0,
    won: (i) => difference.lead[i] > 0,
  };

  const table = $("task-table");
  const state = { column: 0, up: true, page: 0, found: named };
  const heads = columns.map((column, i) => {
    const button = make("button", "", ...column.title);
    button.type = "button";
    button.addEventListener("click", () => {
      state.up = state.column === i ? !state.up : true;
      state.column = i;
      choose();
    });
    const head = make("th", "", button);
    head.scope = "col";
    head.dataset.title = button.textContent;
    return head;
  });
  table.tHead.append(make("tr", "", ...heads));
  if (other) other.addEventListener("change", () => {
    const head = heads[shownAgents.length];
    head.firstChild.replaceChildren(agentName(agents[other.value]));
    head.dataset.title = head.textContent;
    choose();
  });

  const choose = () => {
    const text = $("find").value.trim().toLowerCase();
    const keep = ONLY[$("only").value];
    const { key } = columns[state.column];
    const sign = state.up ? 1 : -1;
    const found = named.filter((i) => keep(i) && (!text || low[i].includes(text)));
    // what has no value comes last, whatever the direction; equals stay in the order of their names
    found.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x - y);
    });
    Object.assign(state, { found, page: 0 });
    show();
  };
  const row = (i) => {
    const head = make("th");
    head.scope = "row";
    if (canOpen) {
      const button = make("button", "", taskName(i));
      button.type = "button";
      button.addEventListener("click", () => open(i));
      head.append(button);
    } else head.append(taskName(i));
    const cells = columns.slice(1).map((column) => {
      const cell = make("td");
      cell.dataset.label = column.label ? column.label() : column.title[0];
      column.fill(cell, i);
      return cell;
    });
    return make("tr", "", head, ...cells);
  };
  const number = (n) => n.toLocaleString("en");
  const show = () => {
    const { found, page, column, up } = state;
    const first = page * PAGE, last = Math.min(first + PAGE, found.length);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : up ? "ascending" : "descending"));
    table.tBodies[0].replaceChildren(...found.slice(first, last).map(row));
    const all = names.length === 1 ? "1 task" : `${number(names.length)} tasks`;
    $("count").textContent = found.length === names.length ? all : `${number(found.length)} of ${all}`;
    const rows = found.length ? `${number(first + 1)} to ${number(last)} of ${number(found.length)}` : "none";
    $("page").textContent = rows;
    $("printed").textContent = found.length > PAGE || found.length < names.length
      ? `rows ${rows}, of ${all}; the others are left out.` : "all tasks.";
    $("previous").parentNode.hidden = found.length <= PAGE;
    $("previous").disabled = page === 0;
    $("next").disabled = last >= found.length;
  };
  const turn = (by) => { state.page += by; show(); };
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  $("find").addEventListener("input", choose);
  $("only").addEventListener("change", choose);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  choose();

  // ---- one task's conversations
  const reader = $("reader");
  const [choices, transcript] = [reader.querySelector(".trials"), reader.querySelector(".transcript")];
  const read = (one, button) => {
    for (const other of choices.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    const turns = one[6];
    const content = turns.flatMap(([id, said, scores, verdict], i) => {
      const head = make("h3", "", `${i + 1} of ${turns.length}: `, shown(id));
      if (verdict) head.append(make("b", "", ` ${WORDS[verdict]}`));
      const lines = said.map(([kind, text, who]) => {
        const name = parts[kind];
        return make("div", `said ${name}`, who === undefined ? make("span", "", LABELS[name]) : make("span", "", shown(who)),
          text.trim() ? shown(text, "p") : make("p", "note", text ? "(blank)" : "(empty)"));
      });
      const grades = scores.map(([name, value, reason]) => {
        const score = make("div", "score", make("strong", "", shown(name), `: ${value}`));
        if (reason) score.append(shown(reason, "p"));
        return score;
      });
      return [head, ...lines, ...grades];
    });
    const where = make("p", "note", "session ", shown(one[3]), `, ${WORDS[one[4]]}`);
    transcript.replaceChildren(where, ...content);
    transcript.scrollTop = 0;
  };
  const open = (task, wanted) => {
    const own = byTask().get(task) ?? [];
    $("reader-title").replaceChildren(shown(names[task]));
    const groups = new Map();
    for (const one of own) {
      const button = make("button", "", `${one[2]}: ${WORDS[one[4]]}`);
      button.type = "button";
      button.addEventListener("click", () => read(one, button));
      if (!groups.has(one[5])) groups.set(one[5], []);
      groups.get(one[5]).push(make("li", "", button));
    }
    choices.replaceChildren(...[...groups].flatMap(([agent, buttons]) => [
      make("p", "", shown(agent), ", attempts"), make("ul", "", ...buttons)]));
    const first = wanted ? own.findIndex(wanted) : Math.max(own.findIndex((one) => one[4] !== "pass"), 0);
    if (own[first]) read(own[first], choices.querySelectorAll("button")[first]);
    else transcript.replaceChildren(make("p", "", `This file has no conversation of this ${wanted ? "trial" : "task"}.`));
    reader.showModal();
    $("reader-title").focus();
  };
  $("close").addEventListener("click", () => reader.close());
  reader.addEventListener("click", (event) => { if (event.target === reader) reader.close(); });

  // ---- examples of failures open their trial
  if (canOpen) for (const place of document.querySelectorAll("[data-trial]")) {
    const [agent, task, trial] = place.dataset.trial.split(" ").map(Number);
    const button = make("button", "", ...place.childNodes);
    button.type = "button";
    button.addEventListener("click", () => open(task, (one) => one[0] === agent && one[2] === trial));
    place.append(button);
  }

  // ---- the heat map: what a cell is about is said below it, and a click opens its task
  const heat = $("heat");
  if (heat) {
    const { agents: rows, tasks: order, columns: cuts } = data("data-heat");
    const cellAt = (event) => {
      const box = heat.getBoundingClientRect();
      const at = (place, size, count) => Math.min(Math.max(Math.floor((place / size) * count), 0), count - 1);
      const column = at(event.clientX - box.left, box.width, cuts.length - 1);
      return [agents[rows[at(event.clientY - box.top, box.height, rows.length)]], order.slice(cuts[column], cuts[column + 1])];
    };
    heat.addEventListener("mousemove", (event) => {
      const [agent, found] = cellAt(event);
      const sum = (name) => found.reduce((all, i) => all + agent[name][i], 0);
      const what = found.length === 1 ? taskName(found[0]) : `${found.length} tasks`;
      $("heat-cell").replaceChildren(agentName(agent), ", ", what, `: ${sum("passed")} of ${sum("scored")} passed`);
    });
    heat.addEventListener("mouseleave", () => $("heat-cell").replaceChildren());
    heat.addEventListener("click", (event) => { if (canOpen) open(cellAt(event)[1][0]); });
  }

  // ---- on a phone all but the answer is folded: its headings are the list of sections, and open them
  if (narrow) {
    document.querySelector("nav").hidden = true;
    for (const head of document.querySelectorAll("main > section:not(.answer) > h2")) {
      const button = make("button", "", ...head.childNodes);
      button.type = "button";
      button.addEventListener("click", () => {
        button.ariaExpanded = String(!head.parentNode.toggleAttribute("data-folded"));
      });
      head.append(button);
      button.click();
    }
    document.getElementById(location.hash.slice(1))?.querySelector("h2 > button")?.click();
  }

  // ---- print: what is folded is printed, except for examples of failures and, of many agents, long tables
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .failures details, .many .bulky)")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
})();
