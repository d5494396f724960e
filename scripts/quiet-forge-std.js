// npm runs this after an install. solc 0.8.37 gives over 256 warnings for the older forge-std inside
// @uniswap/v4-core, and stops reporting at 256, so that warnings of our own tests would be hidden. This makes three
// edits to the installed copy; none of them changes the bytecode.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', 'node_modules', '@uniswap', 'v4-core', 'lib', 'forge-std', 'src');
for (const name of fs.readdirSync(root, { recursive: true })) {
  if (!name.endsWith('.sol')) continue;
  const file = path.join(root, name);
  const before = fs.readFileSync(file, 'utf8');
  const after = before
    .replace(/^pragma experimental ABIEncoderV2;\n/m, '') // the default since Solidity 0.8.0
    .replace(/\bstring calldata error\b/g, 'string calldata err') // `error` will become a keyword
    .replace(/\/\/\/ @solidity memory-safe-assembly\s+assembly \{/g, 'assembly ("memory-safe") {'); // the old spelling
  if (after !== before) fs.writeFileSync(file, after);
}
