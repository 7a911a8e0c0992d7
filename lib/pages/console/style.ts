/** The style of the pages of the console, after that of every page. Its colours are those of STYLE. */
export const CONSOLE_STYLE = `
body.console header, body.console nav, body.console main, body.console footer { max-width: 60rem; }
body.console select {
  width: 100%; min-height: 3rem; margin: 0 0 1rem; padding: .5rem .75rem;
  border: 1px solid var(--border); border-radius: .5rem; background: var(--surface); color: var(--text); font: inherit;
}
body.console textarea, body.console pre { font: .875rem/1.5 ui-monospace, "Liberation Mono", monospace; }
body.console pre {
  max-height: 24rem; margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem; background: var(--hover); overflow: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; hyphens: manual;
}
body.console nav form[role=search] { display: block; padding: 0 0 .75rem; border: 0; }
body.console nav form[role=search] p { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0; }
body.console nav form[role=search] p.hint { margin-top: .375rem; font-size: .875rem; }
body.console nav form[role=search] input { flex: 1 1 7rem; width: 0; min-height: 2.75rem; margin: 0; }
body.console main form button { width: auto; min-width: min(100%, 12rem); }
body.console .stale a { display: inline; min-height: 0; padding: 0; }
body.console .entries li > div > p > a { margin-block: -.25rem; }
body.console .entries li > div > p:first-child > a { margin-block: -.625rem; }
body.console .unseen { padding: 0 .25rem; border: 1px solid var(--error); border-radius: .25rem; color: var(--error); font-size: .8125em; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); gap: .25rem 1.5rem; }
.facts dd { margin-bottom: .5rem; }
.facts > div:only-child { grid-column: 1 / -1; }
.facts ul { margin: 0; padding: 0; list-style: none; }
.facts .names { display: flex; flex-wrap: wrap; gap: 0 1rem; }
.facts > div:has(.names) { grid-column: 1 / -1; }
.acts { margin: 1rem 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: .625rem; align-items: start; }
.dangerous > summary { color: var(--error); }
.act { margin: 0 0 .625rem; }
.acts .dangerous > summary { color: var(--error); }
.act { margin: 0; }
.acts .act[open] { grid-column: 1 / -1; }
.act form { padding: .75rem; border: 1px solid var(--divider); border-radius: .5rem; margin-top: .375rem; }
.entries .act { flex: 0 1 18rem; margin: 0; }
.entries .act + .act { margin-top: .375rem; }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); gap: 0 1.5rem; align-items: end; margin: 0 0 1rem; }
.filters > button { margin-bottom: 1rem; }
.whole { flex: 0 1 12rem; }
.whole[open] { flex-basis: 100%; min-width: 0; }
.whole pre { margin-top: .5rem; }
.same { margin-top: 2rem; }
.same summary { border-color: var(--divider); font-weight: 400; color: var(--muted); }
.same pre { margin-top: .5rem; }
.can { padding: .75rem 1rem; border-left: .25rem solid var(--mark-text); border-radius: .25rem; background: var(--mark); color: var(--mark-text); }
.can.not { border-color: var(--error); background: var(--error-background); color: var(--error); }
.secret-shown { margin: 0 0 1rem; padding: .75rem 1rem; border: 1px solid var(--border); border-radius: .5rem; }
.secret-shown .code { margin: 0; text-align: left; padding: .75rem 1rem; }
.secret-shown .code code { font-size: 1rem; letter-spacing: .02em; }
body.own nav.pager { padding: 0; }
nav.pager ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
nav.pager a { color: var(--link); }
nav.pager:not(.kinds) a { padding-inline: 0; text-decoration: underline; }
nav.kinds { margin-bottom: 1rem; }
body.console h3 { margin: 1rem 0 .25rem; font-size: 1rem; }
.mark-list { margin: 0 0 1rem; padding-left: 1.25rem; }
.mark-list li { margin-bottom: .375rem; }
@media (min-width: 56rem) {
  body.own.console header, body.own.console footer { max-width: none; }
  body.own.console nav { width: 100%; }
  body.own.console { padding-inline: 1rem; grid-template-columns: 16rem minmax(0, 60rem); }
}
`
