import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { IdentityError } from '../../lib/errors.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { findMailbox } from '../../lib/records/user.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { chooseMailLanguage } from '../../plugins/mail-language.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { describeLimit, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, describeProof } from './page.ts'

/** Why a form was refused, in the reader's language. Undefined for an error that the reader has not caused. */
function describeRefusal (error: IdentityError): Message | undefined {
  const { code } = error
  if (code === 'ErrLimit') return describeLimit(error)
  if (code === 'ErrPerm') return ({ account }) => error.message.startsWith('email:') ? account.boundAddress : account.lastAdmin
  if (code !== 'ErrParam') return undefined
  return describeProof(error) ?? (({ account }) => account.wrongAddress)
}

const readEmail = (request: FastifyRequest) => readField(request, 'email').trim().slice(0, 2 * LIMITS.account)

/** The pages for the person's address, if the service sends mail, and for deleting the account, if people may delete theirs. */
export function addressPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { limitWrites, look } = mount
  const { accounts, clients } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)

  add('/email', 'account-email', {
    section: 'email',
    sensitive: true,
    asksProof: true,
    show ({ user }, request) {
      const mailbox = findMailbox(user)
      const isVerified = user.email_verified_at !== undefined
      return {
        email: isVerified ? mailbox : undefined,
        unverified: isVerified ? undefined : mailbox,
        typed: request.method === 'POST' ? readEmail(request) : undefined
      }
    },
    async submit (visit, request) {
      const { user_id } = visit.user
      if (readField(request, 'verify') !== '') {
        await limitWrites(user_id)
        await accounts.sendVerification(user_id, chooseMailLanguage(request))
        return 'verification'
      }
      const { confirm } = await proof.require(request, visit)
      await accounts.changeAddress(user_id, readEmail(request), chooseMailLanguage(request), confirm)
      return 'address'
    },
    describeRefusal
  })

  add('/delete', 'account-delete', {
    section: 'delete',
    sensitive: true,
    asksProof: true,
    show: async ({ user: { user_id }, actor }) => ({ apps: await clients.count(user_id, { ...actor, user_id, isAdmin: false }) }),
    async submit (visit, request, reply) {
      await accounts.deleteOwn(visit.user.user_id, await proof.require(request, visit))
      await visits.signOut(request, reply, visit.server)
      return await sendPage(reply, 'account-deleted', {}, { look })
    },
    describeRefusal
  })
}
