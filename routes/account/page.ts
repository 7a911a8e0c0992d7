import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import type { AccountSection, AccountView, Pages } from '../../lib/pages/contract.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { RestrictedError, checkUnrestricted } from '../../lib/restricted.ts'
import type { AccountMount, Visit, VisitOptions, Visits } from '../../plugins/account.ts'
import { isUnverified, toPageSecret } from '../../plugins/page-proof.ts'
import { sendPage } from '../../plugins/pages.ts'
import { readParameter } from '../../plugins/parameters.ts'

export type Done = NonNullable<AccountView['done']>

const DONE: readonly Done[] = [
  'name', 'password', 'password-removed', 'factor', 'factor-more', 'factor-removed', 'factors-off', 'passkey', 'passkey-more', 'passkey-removed', 'identity',
  'identity-removed', 'renamed', 'codes', 'verification', 'address', 'ended', 'others', 'disconnected', 'renewed', 'secret-removed', 'token-removed',
  'key-added', 'key-removed', 'removed'
]

/** The result of the previous form, as named in the redirect. */
export function readDone (request: FastifyRequest): Pick<AccountView, 'done'> {
  const done = readParameter(request, 'done')
  return { done: DONE.find((one) => one === done) }
}

/** The page of a section that says what a form has done. */
export const toDone = (home: string, section: AccountSection, done: Done): string =>
  `${home}${section === 'profile' ? '' : `/${section}`}?${new URLSearchParams({ done }).toString()}`

/** Why the proof of a form was refused. Undefined for any other error. */
export function describeProof ({ message }: IdentityError): Message | undefined {
  if (message.startsWith('current_password:')) return ({ account }) => account.wrongCurrent
  if (message.startsWith('code:')) return ({ errors }) => errors.wrongCode
  if (isUnverified(message)) return ({ errors }) => errors.passkeyUnverified
  if (message.startsWith('passkey:')) return ({ errors }) => errors.wrongPasskey
}

/** Why nothing changes: the sign-in came of a way that is for some apps only. */
const RESTRICTED: Message = ({ account }) => account.restricted

type AccountPage = { [Name in keyof Pages]: Pages[Name] extends AccountView ? Name : never }[keyof Pages]

interface Page<Name extends AccountPage> extends VisitOptions {
  /** The path of the page, where its form is sent to another one. */
  shownAt?: string
  /** Whether the form asks for the proof, which may be a passkey. */
  asksProof?: boolean
  /** Whether it changes how the person signs in, which a sign-in of a way for some clients may not. Absent: what asks for a proof does. */
  changesWays?: boolean
  /** The origins that its forms may lead to, beside ours. */
  formTo?: readonly string[]
  /** What the page shows in addition to the part that all pages share. */
  show (visit: Visit, request: FastifyRequest): Promise<Omit<Pages[Name], keyof AccountView>> | Omit<Pages[Name], keyof AccountView>
  /** What the form of the page does, and what the page of its section then says. It may also answer the request itself. */
  submit? (visit: Visit, request: FastifyRequest, reply: FastifyReply): Promise<Done | FastifyReply>
  /** Why the form was refused, in the reader's language. Undefined for an error that the reader has not caused. */
  describeRefusal? (error: IdentityError): Message | undefined
}

/** Creates the function that adds a page of the account: what it shows, and what its form does. */
export function createPages (app: FastifyInstance, { getHome, look }: AccountMount, visits: Visits) {
  /** The options of a proof by a passkey, for a person who has one. */
  async function offerPasskey (visit: Visit): Promise<Pick<AccountView, 'passkey'>> {
    const { user: { user_id, hasPasskey } } = visit
    return hasPasskey ? { passkey: { mode: 'get', options: await app.identity.passkeys.ask('confirm', toPageSecret(visit), user_id) } } : {}
  }

  return function add<Name extends AccountPage> (path: string, name: Name, page: Page<Name>): void {
    const { show, submit, describeRefusal, asksProof = false, changesWays = asksProof, formTo, shownAt = path, ...options } = page
    const schema = { hide: true }

    async function send (visit: Visit, reply: FastifyReply, refusal: { error?: Message } = {}): Promise<FastifyReply> {
      const { request } = reply
      const { isRestricted = false } = visit.actor
      const told = changesWays && isRestricted ? { error: RESTRICTED } : refusal
      const passkey = asksProof ? await offerPasskey(visit) : {}
      const view = { ...visit.view, ...readDone(request), ...passkey, ...await show(visit, request), ...told }
      return await sendPage(reply, name, view as Pages[Name], { look, formTo })
    }

    app.get(shownAt, { schema }, async (request, reply) => {
      const visit = await visits.open(request, reply, options)
      return visit === null ? reply : await send(visit, reply)
    })

    if (submit === undefined) return
    app.post(path, { schema }, async (request, reply) => {
      const visit = await visits.open(request, reply, options)
      if (visit === null) return reply
      try {
        if (changesWays) checkUnrestricted(visit.actor)
        // A reply is a promise of nothing: then the form has answered the request.
        const done: Done | undefined = await submit(visit, request, reply)
        return done === undefined ? reply : reply.redirect(toDone(getHome(), page.section, done), 303)
      } catch (thrown) {
        const error = thrown instanceof RestrictedError ? RESTRICTED : thrown instanceof IdentityError ? describeRefusal?.(thrown) : undefined
        if (error === undefined) throw thrown
        const { statusCode, headers } = thrown as IdentityError
        return await send(visit, reply.code(statusCode).headers(headers), { error })
      }
    })
  }
}
