import type { FastifyInstance } from 'fastify'
import type { IdentityError } from '../../lib/errors.ts'
import { OwnDataLimit } from '../../lib/export/own-data.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { describeLimit } from '../../plugins/pages.ts'
import { sendDocument } from '../list-reply.ts'
import { createPages, describeProof } from './page.ts'

/** Why the download was refused, in the reader's language. Undefined for an error that the reader has not caused. */
function describeRefusal (error: IdentityError): Message | undefined {
  if (error instanceof OwnDataLimit) return ({ account }) => account.dataAgain({ minutes: error.minutes })
  return error.code === 'ErrLimit' ? describeLimit(error) : describeProof(error)
}

/** The download of everything that is stored about the person. */
export function dataPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { ownData } = app.identity
  const proof = createPageProof(app, mount)

  createPages(app, mount, visits)('/data', 'account-data', {
    section: 'data',
    sensitive: true,
    show: () => ({}),
    async submit (visit, request, reply) {
      await proof.require(request, visit, { mayBeRestricted: true })
      const pieces = await ownData.read(visit.user.user_id)
      reply.headers({ 'content-disposition': 'attachment; filename="account-data.json"', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
      return await sendDocument(reply, pieces, mount)
    },
    describeRefusal
  })
}
