import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { PasswordSet } from '../lib/accounts/password.ts'
import type { Pages } from '../lib/pages/contract.ts'
import { PASSWORD } from '../lib/way.ts'
import { type AccountMount, createSignInCookie, createVisits } from './account.ts'
import { readField, toLogin } from './sign-in-forms.ts'

export type LinkSignInMount = Pick<AccountMount, 'getServer' | 'getIssuer' | 'getHome' | 'now'>

/** What the page after a new password says of the sign-in. */
type Entered = Pick<Pages['link-done'], 'signIn' | 'isElsewhere'>

/** The sign-in that a page of a link is part of. */
export interface LinkSignIn {
  /** Begins the sign-in. @returns what the page needs of it; `signedInAs` is another account, which this browser is signed in to */
  begin (request: FastifyRequest, reply: FastifyReply, account: string): Promise<Pick<Pages['set-password'], 'xsrf' | 'signedInAs'>>
  /**
   * Finds the sign-in of a form, before a new password ends the sessions of its user.
   * @returns goes on after the password was set: it answers, or says what is still missing
   */
  prepare (request: FastifyRequest, reply: FastifyReply): Promise<(set: PasswordSet) => Promise<Entered>>
}

/** Whether somebody who is signed in to another account agrees to change it. */
export const isSwitching = (request: FastifyRequest): boolean => readField(request, 'switch') !== ''

/**
 * The sign-in of a browser on the page of a link: the password that is set there is its first proof. The page begins the sign-in, and its form
 * carries the secret, as that of the sign-in page does. Without it a password is set and nobody is signed in, because the form of a stranger
 * would otherwise sign a visitor in to the stranger's account.
 */
export function createLinkSignIn (app: FastifyInstance, mount: LinkSignInMount): LinkSignIn {
  const { signIns, users } = app.identity
  const { getServer, getHome } = mount
  const visits = createVisits(app, mount)
  const nameOf = async (user_id: string) => (await users.get(user_id))?.account

  return {
    async begin (request, reply, account) {
      const server = await getServer()
      const session = await visits.findSession(request, reply, server)
      const current = session === null ? undefined : await nameOf(session.user_id)
      const { xsrf } = createSignInCookie(server.issuer).begin(request, reply)
      return { xsrf, ...(current !== undefined && current !== account && { signedInAs: current }) }
    },

    async prepare (request, reply) {
      const server = await getServer()
      const cookie = createSignInCookie(server.issuer)
      const proof = cookie.match(request)
      // Also one that another provider could renew: it would pass for the sign-in at a further step.
      const session = await visits.findSession(request, reply, server)
      return async ({ user_id, epoch }) => {
        if (proof === undefined) return {}
        const isOther = session !== null && session.user_id !== user_id
        if (isOther && !isSwitching(request)) return { signIn: { is: 'other', account: await nameOf(session.user_id) ?? '' } }
        const outcome = await signIns.proceed(proof.secret, { user_id, user_epoch: epoch, way: PASSWORD, kind: 'password' })
        if ('done' in outcome) {
          await visits.signIn(request, reply, server, toLogin(outcome.done))
          cookie.end(reply)
          return { signIn: { is: 'done' } }
        }
        if (!('next' in outcome)) return {}
        if (isOther) await visits.signOut(request, reply, server)
        return { signIn: { is: 'next', to: `${getHome()}/sign-in` } }
      }
    }
  }
}
