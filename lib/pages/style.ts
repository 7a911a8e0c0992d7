/**
 * The style sheet of every page. It is inlined, so that a page is one request wherever it is mounted. The content security policy
 * allows it by its hash. Each colour scheme defines every colour once. test/pages/style.test.ts computes the contrast of every
 * pair in use.
 */
export const STYLE = `
:root {
  color-scheme: light dark;
  --background: #f4f5f7; --surface: #ffffff; --text: #1b1f24; --muted: #57606c; --border: #7b8490; --divider: #e1e4e9;
  --button: #24508f; --button-hover: #1b3f73; --button-text: #ffffff; --hover: #eef1f5; --link: #24508f; --focus: #1b63d6;
  --error: #9c1c24; --error-background: #fdf0f0; --mark: #e3e9f2; --mark-text: #24508f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --background: #101317; --surface: #191d23; --text: #e9ebee; --muted: #a5adb8; --border: #78818d; --divider: #2d333b;
    --button: #a9c5f2; --button-hover: #c4d8f8; --button-text: #0f1a2b; --hover: #252b33; --link: #a9c5f2; --focus: #8ab4ff;
    --error: #ffb3ad; --error-background: #38191b; --mark: #27344a; --mark-text: #c4d8f8;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
body { margin: 0; min-height: 100vh; min-height: 100dvh; display: flex; flex-direction: column; align-items: center; background: var(--surface); color: var(--text); }
header { display: flex; align-items: center; gap: .75rem; width: 100%; max-width: 26rem; padding: 1.5rem 1.25rem 0; color: var(--muted); font-weight: 600; overflow-wrap: anywhere; }
header img { flex: none; max-width: 12rem; max-height: 3rem; }
main { width: 100%; max-width: 26rem; padding: 1.5rem 1.25rem; overflow-wrap: anywhere; hyphens: auto; }
bdi, code, time, input, .code, .codes { hyphens: manual; }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; text-wrap: balance; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
strong { font-weight: 600; }
.muted { color: var(--muted); font-size: .9375rem; }
.mark { display: grid; place-items: center; width: 3rem; height: 3rem; margin: 0 0 1rem; border-radius: .75rem; background: var(--mark); color: var(--mark-text); font-size: 1.375rem; font-weight: 650; overflow: hidden; }
.mark img { max-width: 100%; max-height: 3rem; }
.logo { max-width: 3rem; max-height: 1.25rem; vertical-align: -.2rem; }
.error { padding: .75rem 1rem; border-left: .25rem solid var(--error); border-radius: .25rem; background: var(--error-background); color: var(--error); }
h1 + .error { margin-top: 1rem; }
.account { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0 1rem; margin: 1.25rem 0; padding: .25rem 0; border-block: 1px solid var(--divider); }
.account > span { padding: .5rem 0; min-width: 0; }
.scopes { margin: -.5rem 0 1.25rem; padding: 0; list-style: none; }
.scopes li { position: relative; padding: .375rem 0 .375rem 1.5rem; }
.scopes li::before { content: ""; position: absolute; left: .25rem; top: .875rem; width: .5rem; height: .5rem; border-radius: 50%; background: var(--border); }
code { font: .9375em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
.code { margin: 0 0 1rem; padding: 1rem .5rem; border-radius: .5rem; background: var(--mark); color: var(--mark-text); text-align: center; }
.code code { font-size: 1.625rem; font-weight: 600; letter-spacing: .12em; }
label { display: block; margin: 0 0 .375rem; font-weight: 600; font-size: .9375rem; }
.hint { margin: -.25rem 0 .375rem; color: var(--muted); font-size: .9375rem; }
input, textarea { display: block; width: 100%; min-height: 3rem; margin: 0 0 1rem; padding: .625rem .75rem; border: 1px solid var(--border); border-radius: .5rem; background: var(--surface); color: var(--text); font: inherit; }
input[aria-invalid], textarea[aria-invalid] { border: 2px solid var(--error); }
input.letters { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: 1.25rem; letter-spacing: .1em; text-transform: uppercase; }
.actions, .upstreams { display: grid; gap: .5rem; margin: 1.25rem 0 0; }
.upstreams { margin-top: 1rem; }
.secret + .actions, .upstreams + .actions { margin-top: 0; }
.upstreams .button, .upstreams button { min-height: 2.75rem; padding-block: .5rem; }
.upstreams .button, .upstreams button, .actions .button { display: flex; align-items: center; justify-content: center; gap: .625rem; }
.provider { flex: none; }
.divider { display: flex; align-items: center; gap: .75rem; margin: .75rem 0 .5rem; color: var(--muted); font-size: .9375rem; }
.divider::before, .divider::after { content: ""; flex: 1; border-top: 1px solid var(--divider); }
.secret { position: relative; }
.secret input { padding-right: 6rem; }
.secret button { position: absolute; top: .125rem; right: .125rem; width: auto; min-height: 2.75rem; padding: 0 .75rem; border: 0; color: var(--link); }
.secret button[aria-pressed=true] { background: var(--mark); }
.links { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .75rem; margin: .5rem 0 0; font-size: .9375rem; }
button.link { width: auto; min-height: 2.75rem; padding: .625rem 0; border: 0; color: var(--link); font-weight: 400; text-align: left; }
button.link, button.link:hover { background: transparent; text-decoration: underline; text-underline-offset: .15em; }
a { display: inline-block; padding: .625rem 0; min-height: 2.75rem; color: var(--link); text-underline-offset: .15em; }
button, a.button { display: block; width: 100%; min-height: 3rem; padding: .625rem 1rem; border: 1px solid var(--border); border-radius: .5rem; background: transparent; color: var(--text); font: inherit; font-weight: 600; cursor: pointer; overflow-wrap: anywhere; text-align: center; text-decoration: none; }
button:hover, a.button:hover { background: var(--hover); }
button.primary, a.primary { border-color: transparent; background: var(--button); color: var(--button-text); }
button.primary:hover, a.primary:hover { background: var(--button-hover); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.next { margin: 1.25rem 0 0; }
form + .muted, .actions + .muted, .next + .muted { margin-top: 1.25rem; }
.legal a { display: inline; min-height: 0; padding: 0; }
[hidden] { display: none !important; }
.passkey { margin: .625rem 0; }
.hidden { position: absolute; width: 1px; height: 1px; min-height: 0; margin: 0; padding: 0; border: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.done { padding: .75rem 1rem; border-left: .25rem solid var(--mark-text); border-radius: .25rem; background: var(--mark); color: var(--mark-text); }
.tag { display: inline-block; padding: 0 .5rem; border-radius: .75rem; background: var(--mark); color: var(--mark-text); font-size: .875rem; font-weight: 600; }
.tag.failed { background: var(--error-background); color: var(--error); }
label.check { display: flex; align-items: center; gap: .75rem; min-height: 2.75rem; margin: 0 0 1rem; font-weight: 400; }
.check input { flex: none; width: 1.375rem; min-height: 2.75rem; margin: 0; }
.choices { padding-left: 2.125rem; }
.choices .check { margin: 0; }
.qr { display: block; width: 15rem; max-width: 100%; height: auto; margin: 0 0 1rem; border: 1px solid var(--divider); }
.code.seed code { font-size: 1.125rem; letter-spacing: .04em; }
.codes { margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem; background: var(--mark); color: var(--mark-text); list-style: none; }
.codes li { padding: .25rem 0; }
h2 { margin: 1.75rem 0 .5rem; font-size: 1.125rem; line-height: 1.3; font-weight: 650; }
body.own header, body.own nav, body.own main, body.own footer { max-width: 44rem; }
nav { width: 100%; padding: .5rem 1.25rem 0; }
summary { display: flex; align-items: center; justify-content: space-between; min-height: 2.75rem; padding: .375rem .75rem; border: 1px solid var(--border); border-radius: .5rem; font-weight: 600; cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::after { content: ""; width: .5rem; height: .5rem; margin: 0 .25rem .25rem 1rem; border: solid currentColor; border-width: 0 2px 2px 0; transform: rotate(45deg); }
details[open] > summary::after { margin-bottom: -.25rem; transform: rotate(-135deg); }
nav ul { margin: .5rem 0; padding: 0; list-style: none; }
nav .apart { margin-top: .5rem; padding-top: .5rem; border-top: 1px solid var(--divider); }
nav a { display: block; padding: .625rem .75rem; border-radius: .5rem; color: var(--text); text-decoration: none; }
nav a:hover { background: var(--hover); }
nav a[aria-current] { background: var(--mark); color: var(--mark-text); font-weight: 600; }
nav form { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; padding: .75rem; border-top: 1px solid var(--divider); }
nav .who { flex: 1 1 8rem; min-width: 0; margin: 0; color: var(--muted); overflow-wrap: anywhere; }
nav button, .entries button, .entries .button { width: auto; min-height: 2.75rem; padding: .375rem 1rem; }
.entries .button { display: inline-flex; align-items: center; }
.entries { margin: 0 0 1rem; padding: 0; list-style: none; }
.entries > li { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .75rem 1.25rem; padding: 1rem 0; border-top: 1px solid var(--divider); }
.entries > li > div { flex: 1 1 14rem; min-width: 0; }
.entries h2 { margin-top: 0; }
.entries p { margin-bottom: .25rem; }
.entries .scopes { margin: 0 0 .5rem; }
dl { margin: 1rem 0; }
dt { color: var(--muted); font-size: .9375rem; }
dd { margin: 0 0 .75rem; }
dd .scopes { margin: 0; }
footer { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1.5rem; width: 100%; max-width: 26rem; padding: 0 1.25rem 1rem; font-size: .9375rem; overflow-wrap: anywhere; }
footer ul { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0; padding: 0; list-style: none; }
footer a, footer span { display: inline-block; padding: .625rem 0; color: var(--muted); }
button.danger { border-color: var(--error); color: var(--error); }
@media (min-width: 30rem) and (min-height: 30rem) {
  body { background: var(--background); }
  body::before, body::after { content: ""; flex: 1 1 0; }
  body::after { flex-grow: 1.6; }
  main, nav, header, footer { width: calc(100% - 2rem); }
  main { max-width: 28rem; margin: .625rem 1rem; padding: 1.75rem 2rem; border: 1px solid var(--divider); border-radius: 1rem; background: var(--surface); }
  header { max-width: 28rem; padding: .75rem .25rem 0; }
  nav { padding: .75rem 0 0; }
  footer { max-width: 46rem; justify-content: center; padding: 0 .25rem .5rem; }
  body.own::before { display: none; }
  body.own::after { flex-grow: 1; }
}
@media (min-width: 56rem) {
  body.own { display: grid; grid-template: auto 1fr auto / 15rem minmax(0, 42rem); justify-content: center; align-items: start; column-gap: 1.5rem; }
  body.own header, body.own footer { grid-column: 1 / -1; width: 100%; max-width: none; }
  body.own nav { padding: 1rem 0; }
  body.own main { width: 100%; margin: 1rem 0; }
  nav summary { display: none; }
  nav ul { margin: 0 0 .75rem; }
  nav details::details-content { content-visibility: visible; }
  @supports not selector(::details-content) { nav summary { display: flex; } }
}
@media (prefers-reduced-motion: no-preference) {
  button, a.button, input { transition: background-color .12s, border-color .12s; }
}
@media print {
  nav, form, footer, .next { display: none !important; }
}
@media (forced-colors: active) {
  button.primary, a.primary { border-color: ButtonText; }
  .scopes li::before { background: CanvasText; }
}
`

/** The colours behind buttons, by colour scheme: the values of --surface and --background above. */
export const SURFACES = { light: ['#ffffff', '#f4f5f7'], dark: ['#191d23', '#101317'] } as const
