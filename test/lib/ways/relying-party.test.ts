import t from 'tap'
import { findRelyingParty } from '../../../lib/ways/relying-party.ts'
import { createApp } from '../../../testing/kit.ts'
import { startIdentity } from '../../../testing/index.ts'

t.test('the relying party is the host of the issuer, or a domain above it', async (t) => {
  t.strictSame(findRelyingParty({ issuer: 'https://id.example.com/a' }), { party: { id: 'id.example.com', origin: 'https://id.example.com' } })
  t.strictSame(findRelyingParty({ issuer: 'https://id.example.com', relyingParty: 'example.com' }).party?.id, 'example.com')
  t.strictSame(findRelyingParty({ issuer: 'http://localhost:3000' }), { party: { id: 'localhost', origin: 'http://localhost:3000' } })
  for (const relyingParty of ['com', 'ample.com', 'other.example', 'a.id.example.com']) {
    t.throws(() => findRelyingParty({ issuer: 'https://id.example.com', relyingParty }), { message: /^option relyingParty: must be the issuer's host id.example.com/ }, relyingParty)
  }
})

t.test('passkeys are off with a reason where browsers refuse them, and without one where the operator has said so', async (t) => {
  for (const issuer of [undefined, 'http://127.0.0.1:3000', 'https://[::1]', 'https://192.0.2.1', 'http://id.example']) {
    const { party, text } = findRelyingParty({ issuer })
    t.equal(party, undefined, String(issuer))
    t.match(text, /^passkeys are off, because/)
  }
  t.strictSame(findRelyingParty({ passkeys: false, issuer: 'https://id.example' }), {})
})

t.test('the start says it in one sentence', async (t) => {
  const start = async (options: Parameters<typeof startIdentity>[0]) => {
    const logged: string[] = []
    await startIdentity({ t, app: createApp({ logger: { level: 'info', stream: { write: (line: string) => { logged.push(JSON.parse(line).msg) } } } }), ...options })
    return logged.filter((line) => line.includes('passkeys'))
  }
  t.match(await start({ oidc: { issuer: 'http://127.0.0.1:3000' } }), [/^passkeys are off, because the issuer's host 127.0.0.1 is an address/])
  t.strictSame(await start({ oidc: { issuer: 'http://localhost' } }), [])
  t.strictSame(await start({ passkeys: false }), [])
  t.strictSame(await start({ oidc: false }), [])
  await t.rejects(start({ oidc: { issuer: 'https://id.example' }, relyingParty: 'other.example' }), { message: /^option relyingParty/ })
})
