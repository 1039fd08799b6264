'use strict';
(() => {
  const form = document.getElementById('filters');
  if (!form) return;
  const results = [...document.querySelectorAll('details.result')];
  const texts = new Map();
  const shownLine = document.getElementById('shown');
  const lists = ['verdict', 'level'];
  const single = ['area', 'capability', 'q'];

  // --- text that a bridge sent: always textContent, with what cannot be seen made visible

  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g;
  const visible = s => s.replace(/\r\n/g, '\n').replace(unseen, c =>
    c === '\ufffd' ? c : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

  const el = (name, cls, ...children) => {
    const e = document.createElement(name);
    if (cls) e.className = cls;
    e.append(...children);
    return e;
  };

  // indent lays JSON out by lines without parsing its numbers, which JavaScript would round.
  const indent = text => {
    try { JSON.parse(text); } catch { return text; }
    let out = '', depth = 0, inString = false;
    const newline = () => '\n' + '  '.repeat(depth);
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (inString) {
        out += c;
        if (c === '\\') out += text[++i];
        else if (c === '"') inString = false;
        continue;
      }
      if (/\s/.test(c)) continue;
      if (c === '"') inString = true;
      if (c === '{' || c === '[') {
        const close = /^\s*[}\]]/.exec(text.slice(i + 1, i + 200));
        if (close) { out += c + close[0].trim(); i += close[0].length; continue; }
        depth++;
        out += c + newline();
      } else if (c === '}' || c === ']') {
        depth--;
        out += newline() + c;
      } else if (c === ',') out += c + newline();
      else if (c === ':') out += ': ';
      else out += c;
    }
    return out;
  };

  // --- requests and responses, at the bridge and at the site

  const bodyOf = m => {
    if (!m.body && !m.truncated) return [];
    const shown = m.encoding === 'base64' ? m.body : indent(m.body || '');
    const pre = el('pre', '', el('bdi', '', visible(shown)));
    pre.tabIndex = 0;
    const notes = [];
    if (m.encoding === 'base64') notes.push('not text, shown as base64');
    if (m.truncated) notes.push(m.truncated + ' more bytes');
    return notes.length ? [pre, el('p', 'facts', notes.join('; '))] : [pre];
  };

  const headersOf = m => {
    const names = Object.keys(m.header || {}).sort();
    if (!names.length) return [];
    const lines = names.map(n => visible(n) + ': ' + visible(m.header[n])).join('\n');
    return [el('details', 'headers', el('summary', '', names.length + (names.length === 1 ? ' header' : ' headers')), el('pre', '', lines))];
  };

  const ms = n => (Math.round(n * 10) / 10) + ' ms';

  const front = (e, at) => {
    const status = e.response ? e.response.status : 0;
    const response = e.response
      ? el('p', 'line', el('b', status >= 400 ? 'bad' : 'good', String(status)), ' ' + ms(e.response.duration_ms || 0))
      : el('p', 'line', el('b', 'bad', 'no response'), ' ' + visible(e.error || ''));
    return el('div', 'front',
      el('p', 'facts', '+' + ms(at) + ' · ' + visible(e.identity || 'anonymous') + ' → bridge'),
      el('p', 'line', el('b', '', visible(e.request.method || '')), ' ' + visible(e.request.url || '')),
      ...headersOf(e.request), ...bodyOf(e.request), response,
      ...(e.response ? [...headersOf(e.response), ...bodyOf(e.response)] : []));
  };

  const upstream = (u, at) => {
    const parts = [el('p', 'facts', '+' + ms(at) + ' · bridge → site as ' + visible(u.user || 'anonymous')),
      el('p', 'line', el('b', '', visible(u.http)), ' ' + visible(u.method || ''))];
    if (u.params) {
      const pre = el('pre', '', el('bdi', '', visible(indent(u.params))));
      pre.tabIndex = 0;
      parts.push(pre);
    }
    parts.push(el('p', 'line', el('b', u.status >= 400 ? 'bad' : 'good', String(u.status)), ' ' + ms(u.duration_ms) +
      (u.method ? (u.ran ? ' · the method ran' : ' · the method did not run') : '') + (u.fault ? ' · fault ' + visible(u.fault) : '')));
    return el('div', 'up', ...parts);
  };

  const svg = (name, attributes) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    return e;
  };

  // offset is when something reached the site; a site whose clock was moved is taken to have had it at once.
  const offset = (e, u, start) => {
    const sent = Date.parse(e.at), at = Date.parse(u.at);
    const received = sent + (e.response ? e.response.duration_ms || 0 : 0);
    return (at < sent - 1000 || at > received + 1000 ? sent : at) - start;
  };

  // lanes draws both sides of the bridge on one axis of time.
  const lanes = (exchanges, start) => {
    const bars = [];
    for (const e of exchanges) {
      const at = Date.parse(e.at) - start;
      bars.push([0, at, e.response ? e.response.duration_ms || 0 : 0, !e.response || e.response.status >= 400]);
      for (const u of e.drupal) bars.push([1, offset(e, u, start), u.duration_ms, u.status >= 400]);
    }
    const end = Math.max(1, ...bars.map(([, at, d]) => at + d));
    const picture = svg('svg', {class: 'lanes', viewBox: '0 0 1000 44', preserveAspectRatio: 'none', role: 'img'});
    picture.append(svg('title', {}));
    picture.firstChild.textContent = exchanges.length + ' exchanges within ' + ms(end) + (siteSeen ? ': above the bridge, below the site' : '');
    for (const [lane, at, d, bad] of bars) {
      picture.append(svg('rect', {class: bad ? 'fail' : lane ? 'up' : 'time', x: 1000 * at / end, y: lane ? 24 : 4, width: Math.max(3, 1000 * d / end), height: 16}));
    }
    return el('div', 'axis', picture, el('p', 'facts', (siteSeen ? 'above: caller ⇄ bridge · below: bridge ⇄ site · ' : 'caller ⇄ bridge · ') + ms(end)));
  };

  // A run that saw nothing of the site must not say that nothing reached it.
  const siteSeen = document.querySelector('main').dataset.site !== 'unseen';

  const showExchanges = details => {
    const data = details.querySelector('script[type="application/json"]');
    if (!data) return;
    const exchanges = JSON.parse(data.textContent);
    data.remove();
    const start = Math.min(...exchanges.map(e => Date.parse(e.at)));
    const rows = exchanges.map(e => el('li', 'exchange', front(e, Date.parse(e.at) - start),
      e.drupal.length ? el('div', 'ups', ...e.drupal.map(u => upstream(u, offset(e, u, start))))
        : el('p', 'facts ups', siteSeen ? 'nothing reached the site' : 'the site behind the bridge was not seen')));
    details.querySelector('.exchanges').append(lanes(exchanges, start), el('ol', '', ...rows));
  };

  // --- filters and the address

  const state = () => {
    const data = new FormData(form), s = {};
    for (const n of lists) s[n] = data.getAll(n);
    for (const n of single) s[n] = (data.get(n) || '').trim();
    return s;
  };

  const textOf = d => {
    if (!texts.has(d)) texts.set(d, (d.querySelector('summary').textContent + ' ' + d.querySelector('.body').textContent).toLowerCase());
    return texts.get(d);
  };

  const apply = () => {
    const s = state(), q = s.q.toLowerCase();
    let n = 0;
    for (const d of results) {
      const fits = (!s.verdict.length || s.verdict.includes(d.dataset.verdict)) &&
        (!s.level.length || s.level.includes(d.dataset.level)) &&
        (!s.area || s.area === d.dataset.area) &&
        (!s.capability || s.capability === d.dataset.capability) &&
        (!q || textOf(d).includes(q));
      d.hidden = !fits;
      if (fits) n++;
    }
    shownLine.textContent = n + ' of ' + results.length + ' clauses';
    document.getElementById('none').hidden = n > 0;
  };

  const writeAddress = open => {
    const s = state(), p = new URLSearchParams();
    for (const n of lists) if (s[n].length) p.set(n, s[n].join(','));
    for (const n of single) if (s[n]) p.set(n, s[n]);
    if (open && [...p].length) p.set('open', open);
    const hash = [...p].length ? p.toString().replaceAll('%2C', ',').replaceAll('%2F', '/') : open || '';
    history.replaceState(null, '', '#' + hash);
  };

  const reveal = (id, focus) => {
    const d = results.find(r => r.id === id);
    if (!d) return;
    d.hidden = false;
    d.open = true;
    showExchanges(d);
    d.scrollIntoView({block: 'start'});
    if (focus) d.querySelector('summary').focus({preventScroll: true});
  };

  const fill = p => {
    for (const n of lists) {
      const values = (p.get(n) || '').split(',');
      for (const box of form.querySelectorAll(`[name=${n}]`)) box.checked = values.includes(box.value);
    }
    for (const n of single) form.elements[n].value = p.get(n) || '';
    apply();
  };

  // readAddress takes the address as filters (#verdict=fail&open=list/x), as a clause (#list/x), or as neither.
  const readAddress = () => {
    const hash = location.hash.slice(1);
    if (hash.includes('=')) {
      const p = new URLSearchParams(hash);
      fill(p);
      if (p.get('open')) reveal(p.get('open'), true);
      else if (ready) form.scrollIntoView({block: 'start'});
      return;
    }
    const clause = results.find(d => d.id === hash);
    if (clause && clause.hidden) fill(new URLSearchParams());
    if (clause) reveal(hash, true);
  };

  let ready = false;
  form.addEventListener('input', () => { apply(); writeAddress(); });
  form.addEventListener('reset', () => setTimeout(() => { apply(); writeAddress(); }));
  addEventListener('hashchange', readAddress);
  for (const d of results) {
    d.addEventListener('toggle', () => {
      if (!d.open) return;
      showExchanges(d);
      if (ready) writeAddress(d.id);
    });
  }
  addEventListener('beforeprint', () => {
    for (const d of results) if (!d.hidden && 'attention' in d.dataset) { d.open = true; showExchanges(d); }
  });

  // --- copy and keys

  const announce = document.getElementById('announce');
  document.addEventListener('click', async e => {
    const button = e.target.closest('button.copy');
    if (!button) return;
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = announce.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    } catch {
      getSelection().selectAllChildren(code);
      announce.textContent = button.textContent = 'Press Ctrl+C';
    }
  });

  const moveTo = d => d && d.querySelector('summary').focus();
  const typing = e => e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT)$/.test(e.target.tagName);

  addEventListener('keydown', e => {
    if (typing(e) || e.key !== 'j' && e.key !== 'k') return;
    const shown = results.filter(d => !d.hidden);
    const at = shown.findIndex(d => d.contains(document.activeElement));
    moveTo(shown[e.key === 'j' ? at + 1 : Math.max(0, at - 1)]);
  });
  form.addEventListener('submit', e => {
    e.preventDefault();
    moveTo(results.find(d => !d.hidden));
  });
  // On keyup, so that the key itself is not typed into the field.
  addEventListener('keyup', e => {
    if (!typing(e) && e.key === '/') form.elements.q.focus();
  });

  readAddress();
  setTimeout(() => { ready = true; });
})();
