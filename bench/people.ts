import { Browser, redeem, requestCode } from './driver/sign-in.ts'
import { range, userAt } from './fixture.ts'
import { admin, type TokenRequest } from './loads.ts'
import { PASSWORD } from './seed.ts'

/** People, each with a client of their own: no more than the clients that oidc-provider keeps. */
const PEOPLE = 20

/** The scopes of an authorization without an ID token, and of one with it. */
export const PLAIN = 'profile offline_access'
export const WITH_ID_TOKEN = `openid ${PLAIN}`

/** A person who is signed in at a browser, and a confidential client that asks for no consent. */
interface Person {
  /** @param scope with `openid`, the answer will have an ID token */
  requestCode (scope: string): Promise<TokenRequest>
  /** Redeems a code. */
  requestRefreshToken (scope: string): Promise<TokenRequest>
}

/** A confidential client, made anew because a new secret comes with the trust in a stored one. */
async function createClient (port: number, index: number): Promise<TokenRequest['client'] & { redirectUris: string[] }> {
  const redirectUris = [`https://people${index}.example.com/callback`]
  const api = async (path: string, options?: { method: string, body: string }): Promise<{ clientId: string, clientSecret: string }> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/client${path}`, { ...options, headers: { ...admin, ...(options && { 'content-type': 'application/json' }) } })
    const { data, message } = await answer.json() as { data: { clientId: string, clientSecret: string }, message?: string }
    if (!answer.ok) throw new Error(`a client could not be made: ${answer.status} ${message}`)
    return data
  }
  const data = { name: `People ${index}`, redirectUris, scopes: [], first_party: true }
  const { clientId } = await api('', { method: 'POST', body: JSON.stringify({ data, credentials: true }) })
  return { clientId, secret: (await api(`/${clientId}`)).clientSecret, redirectUris }
}

async function signIn (port: number, index: number): Promise<Person> {
  const client = await createClient(port, index)
  const browser = new Browser()
  const ask = (scope: string) => requestCode({ port, client, password: PASSWORD }, userAt(index).account, browser, scope)
  await ask(PLAIN)
  return {
    requestCode: async (scope) => ({ client, body: { ...await ask(scope) } }),
    requestRefreshToken: async (scope) => {
      const { refresh_token } = await redeem({ port, client }, await ask(scope))
      return { client, body: { grant_type: 'refresh_token', refresh_token: refresh_token! } }
    }
  }
}

/** Signs people in at a service, one after the other: hashes that wait too long are refused. */
export async function signInPeople (port: number): Promise<Person[]> {
  const people: Person[] = []
  while (people.length < PEOPLE) people.push(await signIn(port, people.length))
  return people
}

/** Has each person in turn make a request ready, one after the other at one browser. */
export async function prepareRequests (people: Person[], count: number, what: keyof Person, scope = PLAIN): Promise<TokenRequest[]> {
  const each = await Promise.all(people.map(async (person) => {
    const requests = []
    while (requests.length < count / people.length) requests.push(await person[what](scope))
    return requests
  }))
  return range(Math.max(...each.map(({ length }) => length)), (index) => each.map((requests) => requests[index]!)).flat()
}
