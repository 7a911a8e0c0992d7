import type { KoaContextWithOIDC } from 'oidc-provider'
import t from 'tap'
import type { OurClient } from '../../../lib/oidc/context.ts'
import { createGrantLoader } from '../../../lib/oidc/policy.ts'
import { readRegistry } from '../../../lib/resources/registry.ts'
import { openRules } from '../../helpers/services.ts'

// A decision counts for the version of a document that the person has seen, whoever has allowed another one meanwhile.

const { store } = await openRules(t)
const loadGrant = createGrantLoader(async () => await readRegistry(store))

class Grant {
  scopes: string[] = []
  addOIDCScope (scope: string): void { this.scopes.push(...scope.split(' ')) }
  addResourceScope (_uri: string, scope: string): void { this.addOIDCScope(scope) }
}

const CLIENT = { clientId: 'https://agent.example/client.json', clientName: 'Agent', registered_uris: [], first_party: false }

/** What a browser remembers of the client's earlier consents. */
type Remembered = { consented?: object }

/** An authorization of `openid` by a client from this version of a document, after a decision about another one. */
async function load (present: OurClient['document'] | undefined, consent: object | undefined, remembered: Remembered = {}): Promise<string[] | undefined> {
  const session = { uid: 'tab', ensureClientContainer: () => {}, sidFor: () => {}, authorizationFor: () => remembered }
  const oidc = {
    session,
    account: { accountId: 'ann' },
    client: { ...CLIENT, ...(present && { document: present }) },
    provider: { Grant },
    requestParamOIDCScopes: new Set(['openid']),
    requestParamScopes: new Set(['openid']),
    resourceServers: {},
    ...(consent && { result: { consent } })
  }
  return (await loadGrant({ oidc } as unknown as KoaContextWithOIDC) as unknown as Grant | undefined)?.scopes
}

const of = (print: string, accepted = true) => ({ print, accepted })

/** Whether another person has allowed the present version makes no difference. */
const CASES: Record<string, [present: ReturnType<typeof of> | undefined, consent: object | undefined, granted: string[] | undefined]> = {
  'the version that they have seen': [of('one'), { document: 'one' }, ['openid']],
  'the version that they have seen, which nobody else has allowed': [of('one', false), { document: 'one' }, ['openid']],
  'another version, which somebody else has allowed': [of('two'), { document: 'one' }, undefined],
  'another version, which nobody has allowed': [of('two', false), { document: 'one' }, undefined],
  'a version, where they have seen a client without one': [of('two'), {}, undefined],
  'a client without a document, where they have seen one': [undefined, { document: 'one' }, undefined],
  'a client without a document': [undefined, {}, ['openid']],
  'a version, where they have decided nothing': [of('one'), undefined, undefined]
}

for (const [name, [present, consent, granted]] of Object.entries(CASES)) {
  t.test(`a decision when the client is ${name}`, async (t) => {
    const remembered: Remembered = {}
    t.strictSame(await load(present, consent, remembered), granted)
    t.equal(remembered.consented !== undefined, granted !== undefined, 'what the browser remembers')
  })
}

t.test('a browser that remembers one version is asked about another', async (t) => {
  const remembered: Remembered = {}
  await load(of('one'), { document: 'one' }, remembered)
  t.strictSame(await load(of('one'), undefined, remembered), ['openid'])
  t.strictSame(await load(of('two'), undefined, remembered), undefined)
})
