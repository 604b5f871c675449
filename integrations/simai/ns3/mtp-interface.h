// SimAI includes this header of ns-3 and uses nothing of it; only NS3_MTP lets it set up its model of NCCL.
