'use strict';
// The arguments are JSON text throughout, so that a number keeps its digits.
const form = document.querySelector('#call');
const gone = 'the console does not respond: start it again';

const parse = text => JSON.parse(text, (_, v, at) => typeof v === 'number' && at && JSON.rawJSON ? JSON.rawJSON(at.source) : v);
const isObject = v => typeof v === 'object' && v !== null && !Array.isArray(v) && !(JSON.isRawJSON && JSON.isRawJSON(v));

// canonical is the same text for the same value.
function canonical(v) {
  if (Array.isArray(v)) return `[${v.map(canonical)}]`;
  if (isObject(v)) return `{${Object.entries(v).map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).sort()}}`;
  return JSON.stringify(v);
}

function fail(input, why) {
  document.querySelector('#problem').textContent = why;
  if (input) {
    input.setAttribute('aria-invalid', 'true');
    input.focus();
  }
  throw new SyntaxError(why);
}

function clear() {
  document.querySelector('#problem').textContent = '';
  form.querySelectorAll('[aria-invalid]').forEach(e => e.removeAttribute('aria-invalid'));
}

// valueOf is what a field holds as JSON, undefined where it is left out.
function valueOf(field, indent = '') {
  const name = field.dataset.name || 'the arguments';
  if (field.dataset.kind === 'object') {
    const inner = indent + '  ';
    const members = [...field.children].filter(f => f.dataset.kind).map(f => [f.dataset.name, valueOf(f, inner)]).filter(([, v]) => v !== undefined);
    if (!members.length) return 'required' in field.dataset ? '{}' : undefined;
    return `{\n${members.map(([n, v]) => `${inner}${JSON.stringify(n)}: ${v}`).join(',\n')}\n${indent}}`;
  }
  const input = field.querySelector('input, textarea, select');
  const text = input.value;
  if (text === '') return undefined;
  if (field.dataset.kind === 'string') return JSON.stringify(text);
  try {
    const v = JSON.parse(text);
    if (field.dataset.kind !== 'number' || typeof v === 'number') return text.trim();
  } catch { /* fail says it */ }
  return fail(input, field.dataset.kind === 'number' ? `${name}: ${text} is no number` : `${name}: this is not JSON; a text has quotation marks`);
}

function fill(field, v) {
  if (field.dataset.kind === 'object') {
    for (const f of field.children) if (f.dataset.kind) fill(f, isObject(v) && Object.hasOwn(v, f.dataset.name) ? v[f.dataset.name] : undefined);
    return;
  }
  const input = field.querySelector('input, textarea, select');
  const text = v === undefined ? '' : JSON.stringify(v);
  input.value = text;
  if (field.dataset.kind === 'string' && v !== undefined) input.value = typeof v === 'string' ? v : '';
  if (field.dataset.kind === 'choice') input.value = [...input.options].map(o => o.value).find(o => o && v !== undefined && canonical(parse(o)) === canonical(v)) ?? '';
}

function start() {
  const json = form.querySelector('#json'), root = form.querySelector('#form > [data-kind]');
  const show = view => {
    form.querySelector('#form').hidden = view !== 'form';
    form.querySelector('#text').hidden = view !== 'json';
    form.elements.view.value = view;
  };
  const typed = () => {
    try {
      return parse(json.value);
    } catch (e) {
      return fail(json, `this is not JSON: ${e.message}`);
    }
  };
  const switchTo = view => {
    clear();
    if (view === 'json') {
      json.value = valueOf(root) ?? '{}';
    } else {
      const v = typed();
      fill(root, v);
      let shown = '';
      try {
        shown = canonical(parse(valueOf(root) ?? '{}'));
      } catch { /* it differs */ }
      clear();
      if (shown !== canonical(v)) fail(json, 'the form has no fields for these arguments: send them as JSON');
    }
    show(view);
  };
  const quietly = f => { // what fails has said why
    try {
      f();
    } catch (e) {
      if (!(e instanceof SyntaxError)) throw e;
    }
  };
  form.querySelectorAll('[name="view"]').forEach(radio => radio.addEventListener('change', () => quietly(() => {
    show(radio.value === 'json' ? 'form' : 'json');
    switchTo(radio.value === 'json' ? 'json' : 'form');
  })));
  show('form');
  if (json.value) { // arguments of a report
    show('json');
    quietly(() => switchTo('form'));
  }
  return () => {
    const inForm = form.elements.view.value === 'form';
    if (!inForm) typed();
    const head = JSON.stringify({caller: form.elements.caller.value, way: form.elements.way.value, tool: form.dataset.tool, clause: form.dataset.clause});
    return `${head.slice(0, -1)},"arguments":${inForm ? valueOf(root) ?? '{}' : json.value}}`;
  };
}

// startRaw is for a request of a report. A body that nobody changes is sent as the report has it: a form does not keep every byte.
function startRaw() {
  const {verb, path, header, body, session} = form.elements, first = body.value;
  return () => JSON.stringify({
    caller: form.elements.caller.value, way: 'HTTP', clause: form.dataset.clause, exchange: Number(form.dataset.exchange),
    request: {method: verb.value, path: path.value, header: header.value, body: body.value === first ? undefined : body.value, session: session?.checked ?? false},
  });
}

// countFaults shows which faults are armed still: a request may have been the last of one.
async function countFaults() {
  if (!document.querySelector('#faults li')) return;
  const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html');
  for (const part of ['#faults summary', '#faults ul']) {
    const shown = document.querySelector(part), now = page.querySelector(part);
    if (shown.outerHTML !== now.outerHTML) shown.replaceWith(now); // a button that somebody is about to press stays
  }
}

async function send(make) {
  const button = form.querySelector('[type="submit"]'), result = document.querySelector('#result');
  clear();
  try {
    const body = make();
    button.disabled = true;
    const response = await fetch('send', {method: 'POST', headers: {'Content-Type': 'application/json'}, body});
    const answer = await response.text();
    if (!response.ok) fail(null, answer);
    result.innerHTML = answer; // a template of ours, which escapes what the bridge sent
    result.focus({preventScroll: true});
    if (result.getBoundingClientRect().top > innerHeight * 2 / 3) result.parentElement.scrollIntoView();
    await countFaults();
  } catch (e) {
    document.querySelector('#problem').textContent = e instanceof TypeError ? gone : e.message;
  } finally {
    button.disabled = false;
  }
}

if (form) {
  const make = form.dataset.tool ? start() : startRaw();
  form.addEventListener('submit', e => {
    e.preventDefault();
    send(make);
  });
  document.addEventListener('keydown', e => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && !e.target.closest('form:not(#call)')) form.requestSubmit();
  });
}
document.addEventListener('input', e => {
  if (e.target.id === 'filter') for (const li of document.querySelectorAll('.tools li')) li.hidden = !li.textContent.toLowerCase().includes(e.target.value.toLowerCase());
});
document.addEventListener('click', e => {
  if (e.target.matches('.copy')) navigator.clipboard.writeText(e.target.previousElementSibling.textContent).then(() => { e.target.textContent = 'Copied'; });
});
// A form that changes something leads to this page again, of which what changed is put in place: what is typed elsewhere stays.
document.addEventListener('submit', async e => {
  if (e.target.method !== 'post') return;
  e.preventDefault();
  const button = e.submitter;
  try {
    const response = await fetch(e.target.action, {method: 'POST', body: new URLSearchParams(new FormData(e.target, button))});
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    for (const part of document.querySelectorAll('#tools, #site')) {
      const next = page.getElementById(part.id), filter = part.querySelector('#filter');
      part.querySelectorAll('details[open]').forEach(d => next.querySelector(`[id="${d.id}"]`)?.setAttribute('open', ''));
      part.replaceWith(next);
      if (filter?.value) {
        next.querySelector('#filter').value = filter.value;
        next.querySelector('#filter').dispatchEvent(new Event('input', {bubbles: true}));
      }
    }
    (document.getElementById(button.id) ?? document.querySelector('#faults summary')).focus();
  } catch {
    document.querySelector('#tools [role="alert"]').textContent = gone;
  }
});
// The journal streams while it is open.
document.querySelector('#journal')?.addEventListener('toggle', e => {
  if (!e.target.open) return e.target.events.close();
  const log = e.target.querySelector('[role="log"]');
  log.replaceChildren();
  e.target.events = new EventSource('journal');
  e.target.events.onmessage = event => {
    const entry = document.createElement('template');
    entry.innerHTML = event.data; // a template of ours, too
    const before = document.getElementById(entry.content.firstChild.id);
    if (before) before.replaceWith(entry.content);
    else log.prepend(entry.content);
    while (log.children.length > 200) log.lastChild.remove();
  };
});
