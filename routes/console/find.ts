import type { FastifyInstance } from 'fastify'
import { findPage } from '../../lib/pages/console/find.ts'
import { LIMITS } from '../../schemas/common.ts'
import type { FindHit, FoundAccount } from '../../schemas/answers.ts'
import type { AddPage } from './page.ts'
import { readText } from './people.ts'

/** The answers of the search box. Of a name that no account has, they say why its owner cannot sign in. */
export function findPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/find',
    needs: 'find',
    commands: () => ['find TEXT', 'user why ACCOUNT'],
    async show (desk) {
      const sought = readText(desk, 'q').trim()
      const hits = sought === '' ? [] : (await desk.read<{ hits: FindHit[] }>('find', { path: '/find', query: { q: sought } }))?.data.hits ?? []
      const isName = sought !== '' && sought.length <= LIMITS.account && !sought.includes(' ')
      const isUnknown = hits.length === 0 && isName
      const asked = isUnknown ? await desk.read<FoundAccount>('findAccount', { path: '/user/sign-in', query: { account: sought } }) : undefined
      return (view, context) => findPage(view, { hits, asked: asked?.data }, context)
    }
  })
}
