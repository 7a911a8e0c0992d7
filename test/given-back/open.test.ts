import { join } from 'node:path'
import t from 'tap'
import { type ServiceOptions, openServices } from '../../lib/identity.ts'
import { findKept } from '../helpers/given-back.ts'
import { toPlainOptions } from '../helpers/plain-services.ts'

// Whichever room cannot be opened: what was opened before it is closed.

t.setTimeout(180_000)

/** Options that count how often they are read, and fail at one of these times. */
function withFault (options: ServiceOptions, fault?: number) {
  const read: string[] = []
  const toGetter = (name: string) => ({
    enumerable: true,
    get () {
      read.push(name)
      if (read.length - 1 === fault) throw new Error(`the option ${name}`)
      return options[name as keyof ServiceOptions]
    }
  })
  return { read, options: Object.defineProperties({}, Object.fromEntries(Object.keys(options).map((name) => [name, toGetter(name)]))) as ServiceOptions }
}

t.test('services of which one cannot be opened leave no descriptor, thread or timer', async (t) => {
  const options = toPlainOptions({
    database: `sqlite:${join(t.testdir(), 'identity.db')}`,
    issuer: 'https://id.example.com',
    accounts: { mail: { local: true, send: async () => {} }, getIssuer: () => new URL('https://id.example.com') },
    upstreams: [{ id: 'github', kind: 'github', clientId: 'c', clientSecret: 'shh', create: true, link: 'never', sync: 'first' }],
    documentHosts: ['apps.example.com'],
    sendsMail: true,
    relaysEvents: true,
    deliversWebhooks: true,
    onError: () => {},
    onWarning: () => {}
  })
  const { read, options: watched } = withFault(options)
  await (await openServices(watched)).close()
  t.ok(read.length > 40, `${read.length} times`)
  t.strictSame(await findKept(async (index) => {
    const opening = openServices(withFault(options, index - 1).options)
    if (index === 0) await (await opening).close()
    else await t.rejects(opening, { message: `the option ${read[index - 1]}` }, `${index}: ${read[index - 1]}`)
  }, { times: read.length }), [])
})
