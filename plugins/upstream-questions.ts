import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Message } from '../lib/pages/texts/en.ts'
import type { Found } from '../lib/upstreams/found.ts'
import type { UpstreamService } from '../lib/upstreams/index.ts'
import type { Owner } from '../lib/upstreams/join.ts'
import { nameUpstream } from '../lib/upstreams/kinds.ts'
import { sendPage } from './pages.ts'
import type { UpstreamSignIn } from './upstream-sign-in.ts'

/** The path of the page that an answer leads to, and that the forms of its questions are sent to. */
function toAction (back: string): string {
  const [path = '', query] = back.split('?')
  return `${path}/upstream${query === undefined ? '' : `?${query}`}`
}

/**
 * Whether a person has to agree first, because this browser is signed in to another account: any site may open the link of a sign-in, and
 * would otherwise change the account under their hands.
 */
export function changesAccount ({ current }: UpstreamSignIn, { intent }: Found, owner: Owner): boolean {
  const isForm = intent.kind === 'sign_in' && intent.fresh === true
  return current !== undefined && !isForm && !('confirm' in owner) && !('proved' in owner && owner.proved.user_id === current)
}

/** What a person is asked between the answer of another provider and the end of the sign-in. */
export function createUpstreamQuestions ({ identity: { accounts, users } }: FastifyInstance, upstreams: Pick<UpstreamService, 'require'>) {
  const toName = ({ upstream }: Found) => nameUpstream(upstreams.require(upstream))

  return {
    /** Asks a new person for their account. */
    async askForAccount (
      reply: FastifyReply, { form, back }: UpstreamSignIn, found: Found, xsrf: string, error?: Message, typed?: string
    ): Promise<FastifyReply> {
      const { claimed: { address, seen }, suggested = '' } = found
      return await sendPage(reply, 'choose-account', {
        action: toAction(back),
        xsrf,
        upstream: toName(found),
        account: address ?? typed ?? suggested,
        isFixed: address !== undefined,
        seen: accounts.outbox === undefined ? undefined : seen,
        error
      }, form.page)
    },

    /** Asks whether the browser changes to another account. */
    async askToSwitch (reply: FastifyReply, { form, back, current = '' }: UpstreamSignIn, found: Found, xsrf: string): Promise<FastifyReply> {
      const account = (await users.get(current))?.account ?? ''
      return await sendPage(reply, 'switch-account', { action: toAction(back), xsrf, upstream: toName(found), account }, form.page)
    }
  }
}
