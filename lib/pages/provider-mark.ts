import type { UpstreamKind } from '../../schemas/upstream.ts'
import type { PageUpstream } from './contract.ts'
import { Html, html } from './html.ts'
import { name } from './parts.ts'
import type { Texts } from './texts/en.ts'

/** What is in a mark of 24 by 24. The marks are those of the providers, in the colours that their rules for sign-in buttons ask for. */
const MARKS: Readonly<Record<Exclude<UpstreamKind, 'oidc'>, string>> = {
  google: '<path fill="#4285f4" d="M22.56 12.25c0-.78-.07-1.53-.2-2.25H12v4.26h5.92a5.06 5.06 0 0 1-2.2 3.32v2.77h3.57c2.08-1.92 3.27-4.74 3.27-8.1z"/>' +
    '<path fill="#34a853" d="M12 23c2.97 0 5.46-.98 7.28-2.66l-3.57-2.77c-.98.66-2.23 1.06-3.71 1.06-2.86 0-5.29-1.93-6.16-4.53H2.18v2.84A11 11 0 0 0 12 23z"/>' +
    '<path fill="#fbbc05" d="M5.84 14.1a6.6 6.6 0 0 1 0-4.2V7.06H2.18a11 11 0 0 0 0 9.88z"/>' +
    '<path fill="#ea4335" d="M12 5.38c1.62 0 3.06.56 4.21 1.64l3.15-3.15A11 11 0 0 0 2.18 7.06L5.84 9.9C6.71 7.3 9.14 5.38 12 5.38z"/>',
  microsoft: '<path fill="#f25022" d="M2 2h9.5v9.5H2z"/><path fill="#7fba00" d="M12.5 2H22v9.5h-9.5z"/>' +
    '<path fill="#00a4ef" d="M2 12.5h9.5V22H2z"/><path fill="#ffb900" d="M12.5 12.5H22V22h-9.5z"/>',
  github: '<path fill="currentColor" d="M12 .3a12 12 0 0 0-3.8 23.4c.6.1.8-.26.8-.58v-2.04c-3.34.73-4.04-1.6-4.04-1.6-.54-1.4-1.33-1.77-1.33-1.77-1.09-.74.08-.73.08-.73 ' +
    '1.2.09 1.84 1.24 1.84 1.24 1.07 1.83 2.8 1.3 3.5 1 .1-.78.41-1.31.75-1.61-2.66-.3-5.46-1.33-5.46-5.93 0-1.3.46-2.38 1.23-3.22-.13-.3-.54-1.52.1-3.18 0 0 ' +
    '1.01-.32 3.3 1.23a11.5 11.5 0 0 1 6.01 0c2.29-1.55 3.3-1.23 3.3-1.23.64 1.66.23 2.88.11 3.18.77.84 1.23 1.92 1.23 3.22 0 4.61-2.8 5.63-5.48 ' +
    '5.92.43.37.82 1.1.82 2.22v3.29c0 .32.21.7.82.58A12 12 0 0 0 12 .3"/>',
  apple: '<path fill="currentColor" d="M12.15 6.9c-.95 0-2.41-1.08-3.96-1.04a5.88 5.88 0 0 0-4.96 3.01c-2.12 3.68-.55 9.1 1.52 12.1 1.01 1.45 2.2 3.09 3.79 3.03 ' +
    '1.52-.06 2.09-.98 3.94-.98 1.83 0 2.35.98 3.96.95 1.63-.03 2.67-1.48 3.67-2.95a12.1 12.1 0 0 0 1.66-3.41c-.04-.02-3.18-1.22-3.22-4.86-.02-3.04 2.48-4.5 ' +
    '2.6-4.56-1.43-2.09-3.62-2.32-4.39-2.38-2-.15-3.67 1.1-4.61 1.1M15.53 3.83A5.3 5.3 0 0 0 16.77 0c-1.2.05-2.66.8-3.53 1.82-.78.9-1.45 2.34-1.27 3.71 1.34.1 2.72-.68 3.56-1.7"/>'
}

const GENERAL = '<path fill="none" stroke="currentColor" stroke-width="2" d="M4 21V4h9v17M13 9h7v12M2 21h20M7.5 8h2m-2 4h2m-2 4h2m7-3h1m-1 4h1"/>'

/** What the button of a provider says, with its mark: that of a public one, or a building for the server of an organization. */
export function labelProvider ({ kind = 'oidc', name: text }: PageUpstream, { upstreams }: Texts): Html {
  const mark = new Html(kind === 'oidc' ? GENERAL : MARKS[kind])
  return html`<svg class="provider" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">${mark}</svg><span>${upstreams.with({ name: name(text) })}</span>`
}
