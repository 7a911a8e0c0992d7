import type { FastifyInstance } from 'fastify'
import type { UserRecord } from '../lib/records/user.ts'
import type { CreationOptions, RequestOptions } from '../lib/ways/passkeys.ts'
import { type AnswerChanges, type Authenticator, type AuthenticatorSettings, createAuthenticator } from './authenticator.ts'

/** A passkey of a user, on an authenticator in software. */
export interface TestPasskey {
  /** The id of the factor. */
  id: string
  /** The id of the credential, base64url. */
  credentialId: string
  /** The recovery codes, which come with the first factor; none with a further one. */
  recoveryCodes: string[]
  /**
   * Answers a challenge of the service.
   * @param page the text of a page with a passkey, or the options of `navigator.credentials.get`
   * @param changes what the answer says instead: a wrong origin for example, or that the user was not verified
   * @returns the value of the form's field `assertion`
   */
  answer (page: string | Pick<RequestOptions, 'challenge' | 'rpId'>, changes?: AnswerChanges): string
  /**
   * Signs in to the account pages over HTTP, and returns the browser's cookies.
   * @param options.path that of the account pages, if it is not `/account`
   */
  signIn (options?: AnswerChanges & { path?: string }): Promise<{ status: number, cookie: string, page: string }>
}

export type EnrolPasskey = (user: string, settings?: AuthenticatorSettings) => Promise<TestPasskey>

const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

/** The options that a page has for the browser's call. @throws Error when it has none */
export function readPasskeyOptions (page: string): { mode: 'get' | 'create', options: RequestOptions & CreationOptions } {
  const [, text] = /data-passkey="([^"]*)"/.exec(page) ?? []
  if (text === undefined) throw new Error('the page has no passkey')
  return JSON.parse(text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]!))
}

const readXsrf = (page: string): string => /name="xsrf" value="([^"]*)"/.exec(page)?.[1] ?? ''

/** Creates a `passkey` for an app: it adds a passkey to a user at once. */
export function createPasskeys (app: FastifyInstance): EnrolPasskey {
  const { store, ways, factors, passkeys } = app.identity
  const users = store.collection<UserRecord>('users')

  function createSignIn (authenticator: Authenticator): TestPasskey['signIn'] {
    return async function signIn ({ path = '/account', ...changes } = {}) {
      const form = await app.inject({ url: `${path}/sign-in` })
      const readCookies = (reply: typeof form) => reply.cookies.filter(({ value }) => value !== '').map(({ name, value }) => `${name}=${value}`)
      const cookies = readCookies(form)
      const payload = new URLSearchParams({
        xsrf: readXsrf(form.payload), way: 'passkey', assertion: authenticator.get(readPasskeyOptions(form.payload).options, changes)
      })
      const headers = { cookie: cookies.join('; '), origin: passkeys.party!.origin, 'content-type': 'application/x-www-form-urlencoded' }
      const reply = await app.inject({ method: 'POST', url: `${path}/sign-in`, headers, payload: payload.toString() })
      return { status: reply.statusCode, cookie: [...cookies, ...readCookies(reply)].join('; '), page: reply.payload }
    }
  }

  return async function passkey (user, settings = {}) {
    if (passkeys.party === undefined) throw new Error('passkeys are off: start the kit with oidc: { issuer: \'http://localhost\' }')
    const record = await users.get(user) ?? await users.getBy('account', user.toLowerCase())
    if (record === null) throw new Error(`there is no user '${user}'`)
    const actor = { user_id: record.id, epoch: record.epoch }
    const isFirst = !Object.values(record.ways ?? {}).some(({ kind }) => kind === 'recovery')
    const authenticator = createAuthenticator(passkeys.party.origin, settings)
    const secret = `kit ${authenticator.id}`
    const id = await passkeys.prepare(actor, secret, authenticator.create(await passkeys.askNew(record, secret)))
    const recovery = isFirst ? [await factors.prepareCodes(actor)] : []
    await ways.name(actor, [id, ...recovery.map((set) => set.id)], { happened: [{ type: 'factor.added', id: record.id }] })
    return {
      id,
      credentialId: authenticator.id,
      recoveryCodes: recovery.flatMap(({ codes }) => codes),
      answer: (page, changes) => authenticator.get(typeof page === 'string' ? readPasskeyOptions(page).options : page, changes),
      signIn: createSignIn(authenticator)
    }
  }
}
